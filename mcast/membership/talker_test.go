// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/internal/lab"
	"golang.org/x/sys/unix"
)

// talker is a program on the host that sends to a group and receives from it through kernel UDP sockets.
type talker struct {
	testing.TB
	fd    int
	group netip.Addr
	to    unix.Sockaddr
}

const talkerPort = 7777

func newTalker(t testing.TB, host *lab.Namespace, group netip.Addr) *talker {
	t.Helper()
	k := &talker{TB: t, group: group}
	index := eth0(t, host).Attrs().Index
	check(t, host.Do(func() error { return k.open(index) }))
	t.Cleanup(k.close)
	timeout := unix.Timeval{Sec: 10}
	check(t, unix.SetsockoptTimeval(k.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout))
	return k
}

func (k *talker) open(index int) (err error) {
	family := unix.AF_INET6
	if k.group.Is4() {
		family = unix.AF_INET
	}
	if k.fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	if k.group.Is4() {
		k.to = &unix.SockaddrInet4{Addr: k.group.As4(), Port: talkerPort}
		err = unix.SetsockoptIPMreqn(k.fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(index)})
	} else {
		k.to = &unix.SockaddrInet6{Addr: k.group.As16(), Port: talkerPort}
		err = unix.SetsockoptInt(k.fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, index)
	}
	if err == nil {
		err = unix.Bind(k.fd, k.to)
	}
	if err == nil && k.group.IsMulticast() {
		err = addMembership(k.fd, index, k.group)
	}
	return err
}

// close closes the socket. It can be called before the test ends, to release the port.
func (k *talker) close() {
	k.Helper()
	if k.fd >= 0 {
		check(k, unix.Close(k.fd))
		k.fd = -1
	}
}

func (k *talker) send(text string) {
	k.Helper()
	check(k, unix.Sendto(k.fd, []byte(text), 0, k.to))
}

// receive waits for a text that was sent from an address.
func (k *talker) receive(want, from string) {
	k.Helper()
	buffer := make([]byte, 64)
	for {
		n, source, err := unix.Recvfrom(k.fd, buffer, 0)
		if err != nil {
			k.Fatalf("%q from %s: %v", want, from, err)
		}
		if string(buffer[:n]) != want {
			continue
		}
		if got := addressOf(source); got.String() != from {
			k.Errorf("%q came from %v, want %s", want, got, from)
		}
		return
	}
}

func addressOf(s unix.Sockaddr) netip.Addr {
	switch s := s.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(s.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(s.Addr)
	}
	return netip.Addr{}
}
