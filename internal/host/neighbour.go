// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Neighbour is the kernel's entry for a neighbour on the interface (ip-neighbour(8)).
type Neighbour struct {
	MAC   net.HardwareAddr // nil if unknown
	State int              // NUD_*; 0 if there is no entry
	flags int              // NTF_*
	ext   int              // NTF_EXT_*
}

// Known reports whether the MAC is known. It remains valid while the kernel probes it again.
func (n Neighbour) Known() bool {
	const good = unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE | unix.NUD_PERMANENT | unix.NUD_NOARP
	return n.State&good != 0 && n.MAC != nil
}

// Failed reports whether the kernel received no response to its requests for the neighbour.
func (n Neighbour) Failed() bool { return n.State&unix.NUD_FAILED != 0 }

// Managed reports whether the kernel keeps the entry fresh.
func (n Neighbour) Managed() bool { return n.ext&netlink.NTF_EXT_MANAGED != 0 }

// Foreign reports whether the administrator or a routing daemon maintains the entry. It must not be changed,
// because that would remove its flags.
func (n Neighbour) Foreign() bool {
	return n.State&(unix.NUD_PERMANENT|unix.NUD_NOARP) != 0 || n.flags&unix.NTF_EXT_LEARNED != 0
}

// Neighbour queries the entry of an address. Its State is 0 if it does not exist.
func (q *Queries) Neighbour(address netip.Addr) (Neighbour, error) {
	message := &netlink.Ndmsg{Family: familyOf(address), Index: uint32(q.index)}
	answers, err := q.request(unix.RTM_GETNEIGH, 0, unix.RTM_NEWNEIGH, message, nl.NewRtAttr(unix.NDA_DST, address.AsSlice()))
	if errors.Is(err, unix.ENOENT) {
		return Neighbour{}, nil
	}
	if err != nil {
		return Neighbour{}, fmt.Errorf("neighbour %v: %w", address, err)
	}
	if len(answers) == 0 {
		return Neighbour{}, nil
	}
	entry, err := netlink.NeighDeserialize(answers[0])
	if err != nil {
		return Neighbour{}, fmt.Errorf("neighbour %v: %w", address, err)
	}
	n := Neighbour{State: entry.State, flags: entry.Flags, ext: entry.FlagsExt}
	if len(entry.HardwareAddr) > 0 {
		n.MAC = entry.HardwareAddr
	}
	return n, nil
}

// Manage makes the kernel resolve a neighbour now and keep its entry fresh (NTF_EXT_MANAGED). It needs
// CAP_NET_ADMIN. It returns ErrNoRoute if the interface no longer has the protocol of the address, such as
// one whose MTU is too small for IPv6.
func (q *Queries) Manage(address netip.Addr) error { return q.use(address, netlink.NTF_EXT_MANAGED) }

// Unmanage undoes Manage: the entry ages like any other.
func (q *Queries) Unmanage(address netip.Addr) error { return q.use(address, 0) }

func (q *Queries) use(address netip.Addr, ext int) error {
	err := q.handle.NeighSet(&netlink.Neigh{LinkIndex: q.index, IP: address.AsSlice(), Flags: netlink.NTF_USE, FlagsExt: ext})
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("request neighbour %v: %w: missing CAP_NET_ADMIN", address, err)
	case errors.Is(err, unix.EINVAL): // of the kernel's arp_constructor and ndisc_constructor
		return fmt.Errorf("%w: request neighbour %v: %w", ErrNoRoute, address, err)
	case err != nil:
		return fmt.Errorf("request neighbour %v: %w", address, err)
	}
	return nil
}

// Forget deletes an entry. The kernel then sends the next request immediately, instead of one second after an earlier
// request without a response.
func (q *Queries) Forget(address netip.Addr) error {
	err := q.handle.NeighDel(&netlink.Neigh{LinkIndex: q.index, IP: address.AsSlice()})
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// SolicitedNode returns the multicast group to which the kernel sends its requests for an IPv6 neighbour (RFC 4291, 2.7.1).
func SolicitedNode(address netip.Addr) netip.Addr {
	group, of := netip.MustParseAddr("ff02::1:ff00:0").As16(), address.As16()
	copy(group[13:], of[13:])
	return netip.AddrFrom16(group)
}

// ForgetGroup deletes the entry that the kernel has created for the solicited-node group of an IPv6 neighbour
// to send its requests there. The kernel creates it again for the next request. Entries of the administrator
// remain.
func (q *Queries) ForgetGroup(address netip.Addr) error {
	group := SolicitedNode(address)
	entry, err := q.Neighbour(group)
	if err != nil || entry.State != unix.NUD_NOARP || entry.flags&unix.NTF_EXT_LEARNED != 0 {
		return err
	}
	return q.Forget(group)
}

// MaxNeighbours returns the maximum number of entries in the kernel's IPv4 or IPv6 neighbour table
// (gc_thresh3), which all network namespaces share. If it cannot be read, MaxNeighbours returns the kernel's
// default.
func MaxNeighbours(v6 bool) uint64 { return maxNeighbours("/proc/sys/net", v6) }

func maxNeighbours(dir string, v6 bool) uint64 {
	family := map[bool]string{false: "ipv4", true: "ipv6"}[v6]
	n := uint64(0)
	if !scanned(dir+"/"+family+"/neigh/default/gc_thresh3", &n) || n == 0 {
		return defaultMaxNeighbours
	}
	return n
}

const defaultMaxNeighbours = 1024

func familyOf(address netip.Addr) uint8 {
	if address.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
