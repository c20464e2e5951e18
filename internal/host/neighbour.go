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
	MAC   net.HardwareAddr // nil if it is not known
	State int              // NUD_*; 0 if there is no entry
	flags int              // NTF_*
	ext   int              // NTF_EXT_*
}

// Known reports whether the MAC is known. It stays valid while the kernel probes it again.
func (n Neighbour) Known() bool {
	const good = unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE | unix.NUD_PERMANENT | unix.NUD_NOARP
	return n.State&good != 0 && n.MAC != nil
}

// Failed reports that the neighbour was asked for and has not answered.
func (n Neighbour) Failed() bool { return n.State&unix.NUD_FAILED != 0 }

// Managed reports whether the kernel keeps the entry fresh by itself.
func (n Neighbour) Managed() bool { return n.ext&netlink.NTF_EXT_MANAGED != 0 }

// Foreign reports whether the administrator or a routing daemon maintains the entry. We must not
// change it, because that would remove their flags.
func (n Neighbour) Foreign() bool {
	return n.State&(unix.NUD_PERMANENT|unix.NUD_NOARP) != 0 || n.flags&unix.NTF_EXT_LEARNED != 0
}

// Neighbour asks for the entry of an address. Its State is 0 if there is none.
func (q *Queries) Neighbour(address netip.Addr) (Neighbour, error) {
	message := &netlink.Ndmsg{Family: familyOf(address), Index: uint32(q.index)}
	answers, err := q.ask(unix.RTM_GETNEIGH, 0, unix.RTM_NEWNEIGH, message, nl.NewRtAttr(unix.NDA_DST, address.AsSlice()))
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

// Manage makes the kernel resolve a neighbour now, and keep its entry fresh from then on
// (NTF_EXT_MANAGED). It needs CAP_NET_ADMIN. ErrNoRoute if the interface does not have the address's protocol any
// more, as one whose MTU is too small for IPv6.
func (q *Queries) Manage(address netip.Addr) error { return q.use(address, netlink.NTF_EXT_MANAGED) }

// Unmanage undoes Manage: the entry ages like any other.
func (q *Queries) Unmanage(address netip.Addr) error { return q.use(address, 0) }

func (q *Queries) use(address netip.Addr, ext int) error {
	err := q.handle.NeighSet(&netlink.Neigh{LinkIndex: q.index, IP: address.AsSlice(), Flags: netlink.NTF_USE, FlagsExt: ext})
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("ask for neighbour %v: %w: it needs CAP_NET_ADMIN", address, err)
	case errors.Is(err, unix.EINVAL): // of the kernel's arp_constructor and ndisc_constructor
		return fmt.Errorf("%w: ask for neighbour %v: %w", ErrNoRoute, address, err)
	case err != nil:
		return fmt.Errorf("ask for neighbour %v: %w", address, err)
	}
	return nil
}

// Forget deletes an entry. The next request is then sent at once; while an
// earlier one waits for its answer, the kernel repeats it only after a second.
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

// ForgetGroup deletes the entry that the kernel has made for the solicited-node group of an IPv6 neighbour, to send its
// requests there. The kernel makes it again for the next request. An entry of the administrator stays.
func (q *Queries) ForgetGroup(address netip.Addr) error {
	group := SolicitedNode(address)
	entry, err := q.Neighbour(group)
	if err != nil || entry.State != unix.NUD_NOARP || entry.flags&unix.NTF_EXT_LEARNED != 0 {
		return err
	}
	return q.Forget(group)
}

// MaxNeighbours returns the maximum number of entries in the kernel's table of neighbours, of IPv4 or of IPv6
// (gc_thresh3), which all network namespaces share. In a namespace where it cannot be read it is the kernel's default.
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
