//go:build linux

package hca

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/verbs"
)

var errWireClosed = fmt.Errorf("%w: the wire; make another with NewWire", verbs.ErrClosed)

// checkWire is check for a wire: it refuses what is about an interface and its kernel too.
func (o *options) checkWire() error {
	if _, err := o.check(); err != nil {
		return err
	}
	for _, option := range []struct {
		name string
		used bool
	}{
		{"InNamespace", o.namespace != ""},
		{"WithXDPMode", o.xdp != "" && o.xdp != XDPAuto},
		{"WithSocketMode", o.socket != "" && o.socket != SocketAuto},
		{"WithSendMode", o.send != "" && o.send != SendAuto},
		{"WithFrames", o.frames != 0},
		{"WithTuning", o.tuning != Tuning{}},
		{"WithMembership", o.membership != "" && o.membership != MembershipAuto},
		{"WithStateDir", o.stateDir != ""},
	} {
		if option.used {
			return fmt.Errorf("%w: %s means nothing on a wire in memory; leave it out", verbs.ErrInvalid, option.name)
		}
	}
	return nil
}

// checkName refuses a name that a new host cannot have. The caller holds mu.
func (w *Wire) checkName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: no name; any will do that no other host of the wire has", verbs.ErrInvalid)
	}
	if slices.ContainsFunc(w.hosts, func(h *wireHost) bool { return h.name == name }) {
		return fmt.Errorf("%w: a host of the wire has that name; choose another, or close that host", verbs.ErrBusy)
	}
	return nil
}

// checkAddresses refuses addresses that a host cannot have. The caller holds mu.
func (w *Wire) checkAddresses(h *wireHost, addresses []netip.Addr) error {
	for i, a := range addresses {
		if what := unfit(a); what != "" {
			return fmt.Errorf("%w: %v is %s; a host has unicast addresses, such as 10.0.0.1 or fd00::1", verbs.ErrInvalid, a, what)
		}
		if slices.Contains(addresses[:i], a) {
			return fmt.Errorf("%w: %v twice; give each address once", verbs.ErrInvalid, a)
		}
		for _, other := range w.hosts {
			if other != h && slices.Contains(other.now().addresses, a) {
				return fmt.Errorf("%w: host %s has %v; take it from there first (SetAddresses)", verbs.ErrBusy, other.name, a)
			}
		}
	}
	return nil
}

// unfit says what keeps an address from being a host's own; empty if nothing does.
func unfit(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "no address"
	case a.IsUnspecified():
		return "unspecified"
	case a.IsLoopback():
		return "a loopback address"
	case a.IsMulticast():
		return "a group's address"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the broadcast address"
	case a.Is4In6():
		return "an IPv4 address inside IPv6 (Addr.Unmap takes it out)"
	case a.Zone() != "":
		return "an address with a zone (Addr.WithZone takes it off)"
	}
	return ""
}
