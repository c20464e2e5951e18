// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/internal/host"
	"golang.org/x/sys/unix"
)

// socketHold is a UDP socket that is a member of one group. Each group has its own socket, because
// net.ipv4.igmp_max_memberships limits the memberships of a socket.
type socketHold int

func joinBySocket(in *host.Namespace, index int, group netip.Addr) (hold, error) {
	fd := -1
	err := in.Do(func() (err error) {
		fd, err = memberSocket(in, index, group)
		return err
	})
	if err != nil {
		return nil, explainSocket(err)
	}
	return socketHold(fd), nil
}

func memberSocket(in *host.Namespace, index int, group netip.Addr) (fd int, err error) {
	family := unix.AF_INET
	if group.Is6() {
		family = unix.AF_INET6
	}
	if fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	if err = in.Check(fd); err == nil {
		err = dropAll(fd)
	}
	if err == nil {
		err = addMembership(fd, index, group)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// dropAll makes the socket drop all packets. It should not receive any, because it is not bound to a port.
func dropAll(fd int) error {
	nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing})
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LOCK_FILTER, 1)
	}
	if err != nil {
		return fmt.Errorf("attach filter: %w", err)
	}
	return nil
}

// addMembership selects the interface by its index. If it were selected by its address, the kernel would choose another
// interface when the address is removed (ip(7), ipv6(7)).
func addMembership(fd, index int, group netip.Addr) (err error) {
	if group.Is4() {
		err = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP,
			&unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(index)})
	} else {
		err = unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP,
			&unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(index)})
	}
	if err != nil {
		return fmt.Errorf("add membership: %w", err)
	}
	return nil
}

// explainSocket adds the cause and the remedy.
func explainSocket(err error) error {
	switch {
	case errors.Is(err, unix.EMFILE):
		var limit unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
		return fmt.Errorf("%w: the limit of open files is %d (RLIMIT_NOFILE), and each group needs one; raise LimitNOFILE= of the unit, or ulimit -n", err, limit.Cur)
	case errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%w: the machine's limit of open files is reached; raise the sysctl fs.file-max", err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w: the interface does not support this IP version; IPv6 needs an MTU of at least %d", err, minIPv6MTU)
	case errors.Is(err, unix.ENOBUFS):
		return fmt.Errorf("%w: the sysctl net.ipv4.igmp_max_memberships is 0; raise it", err)
	}
	return err
}

// release implements hold: closing the socket leaves the group.
func (s socketHold) release() error { return unix.Close(int(s)) }

// describe implements hold.
func (s socketHold) describe() (via Method, foreign bool) { return Socket, false }
