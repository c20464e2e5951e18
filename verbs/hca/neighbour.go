package hca

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// neighbourTimeout is how long a new address handle waits for its neighbour. The
// kernel asks three times, a second apart.
const neighbourTimeout = 4 * time.Second

// known is what the neighbour table says now.
func (h *kernelHost) known(address netip.Addr) nextHop {
	if entry := h.neighbour(address); entry != nil {
		return hopOf(entry)
	}
	return nextHop{address: address}
}

// neighbour is the kernel's entry for an address, nil if there is none.
func (h *kernelHost) neighbour(address netip.Addr) *netlink.Neigh {
	family := netlink.FAMILY_V6
	if address.Is4() {
		family = netlink.FAMILY_V4
	}
	list, _ := whole(func() ([]netlink.Neigh, error) { return h.netlink.NeighList(h.index, family) })
	for i := range list {
		if of, ok := netip.AddrFromSlice(list[i].IP); ok && of.Unmap() == address {
			return &list[i]
		}
	}
	return nil
}

// hopOf reads a neighbour entry. One that is being probed again is still good.
func hopOf(n *netlink.Neigh) nextHop {
	const good = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT | netlink.NUD_NOARP
	address, _ := netip.AddrFromSlice(n.IP)
	hop := nextHop{address: address.Unmap(), reachable: n.State&good != 0 && len(n.HardwareAddr) == len(wire.MAC{})}
	if hop.reachable {
		copy(hop.mac[:], n.HardwareAddr)
	}
	return hop
}

// await implements host.
func (h *kernelHost) await(hop, dest netip.Addr, stop <-chan struct{}) error {
	deadline := time.Now().Add(neighbourTimeout)
	for pause := time.Millisecond; !h.known(hop).reachable; pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %v does not answer on %s%s; is it up, and in the same VLAN?", verbs.ErrUnreachable, hop, h.name, onBehalf(hop, dest))
		}
		select {
		case <-stop:
			return verbs.ErrClosed
		case <-time.After(pause):
		}
	}
	return nil
}

func onBehalf(hop, dest netip.Addr) string {
	if hop == dest {
		return ""
	}
	return fmt.Sprintf(", the next hop to %v", dest)
}

// hold implements host: it counts users, and the first has the kernel keep the
// neighbour fresh.
func (h *kernelHost) hold(hop netip.Addr) error {
	if !hop.IsValid() {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.managed[hop] == 0 {
		if err := h.setManaged(hop, netlink.NTF_EXT_MANAGED); err != nil {
			return explainNeighbour(hop, h.name, err)
		}
	}
	h.managed[hop]++
	return nil
}

func explainNeighbour(hop netip.Addr, name string, err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("ask for neighbour %v on %s: %w: it needs CAP_NET_ADMIN", hop, name, err)
	}
	return fmt.Errorf("ask for neighbour %v on %s: %w", hop, name, err)
}

// release implements host: the last user lets the kernel forget the neighbour.
func (h *kernelHost) release(hop netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.managed[hop] {
	case 0:
		return
	case 1:
		delete(h.managed, hop)
		_ = h.setManaged(hop, 0) // it may have gone, or the interface
	default:
		h.managed[hop]--
	}
}

// renew implements host. Entries go when the interface goes down, or when somebody
// deletes them.
func (h *kernelHost) renew(hop netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.managed[hop] > 0 {
		_ = h.setManaged(hop, netlink.NTF_EXT_MANAGED) // fails while the interface is down
	}
}

// setManaged makes or changes the kernel's entry. What the administrator made is
// left alone: the flag would take the permanence from it.
func (h *kernelHost) setManaged(hop netip.Addr, flag int) error {
	entry := h.neighbour(hop)
	if entry != nil && entry.State&(netlink.NUD_PERMANENT|netlink.NUD_NOARP) != 0 {
		return nil
	}
	if entry == nil && flag == 0 {
		return nil
	}
	return h.netlink.NeighSet(&netlink.Neigh{LinkIndex: h.index, IP: hop.AsSlice(), Flags: netlink.NTF_USE, FlagsExt: flag})
}
