// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
)

// FindEnds returns the addresses of a message to a destination: the source may be left to the host, and a destination
// of 0.0.0.0 or :: is the source. Local addresses are returned unchanged; LoopbackEnd returns the addresses that
// represent them. It uses no lock of the caller.
func (p *Port) FindEnds(source, dest netip.Addr) (from, to netip.Addr, err error) {
	if from, to, err = p.checkEnds(source, dest); err != nil || !from.IsUnspecified() {
		return from, to, err
	}
	p.Asking.Lock()
	from, err = p.host.Source(to)
	p.Asking.Unlock()
	switch {
	case errors.Is(err, host.ErrNoRoute), errors.Is(err, host.ErrLocal):
		return from, to, fmt.Errorf("%w: the host does not reach %v through %s: %w", verbs.ErrUnreachable, dest, p.Name(), err)
	case err != nil:
		return from, to, err
	}
	if from.IsValid() && p.Has(wire.GIDFromAddr(from)) {
		return from, to, nil
	}
	from, err = p.bestSource(to.Is4())
	return from, to, err
}

// checkEnds is FindEnds without a query: from is 0.0.0.0 or :: if the host must choose it.
func (p *Port) checkEnds(source, dest netip.Addr) (from, to netip.Addr, err error) {
	to = dest.Unmap()
	if !to.IsValid() {
		return from, to, fmt.Errorf("%w: no destination", verbs.ErrInvalid)
	}
	if to.IsMulticast() {
		if _, err := mcast.MGID(to); err != nil {
			return from, to, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
		}
	}
	from = anyAddress(to)
	if source.IsValid() {
		if from, err = p.Own(source); err != nil {
			return from, to, err
		}
	}
	if p.Local(to) || p.Local(from) {
		return p.checkLoopback(from, to)
	}
	zone := to.Zone()
	to = to.WithZone("")
	switch {
	case from.Is4() != to.Is4():
		return from, to, fmt.Errorf("%w: source %v and destination %v differ in their IP version", verbs.ErrInvalid, from, to)
	case zone != "" && zone != p.Name():
		return from, to, fmt.Errorf("%w: %v is on the link of %s, not of %s", verbs.ErrUnreachable, to, zone, p.Name())
	case !from.IsUnspecified() && to.IsUnspecified():
		return from, from, nil
	case from.IsUnspecified() && to.IsUnspecified():
		from, err = p.bestSource(to.Is4())
		return from, from, err
	case from.IsUnspecified() && p.Has(wire.GIDFromAddr(to)):
		return to, to, nil
	}
	return from, to, nil
}

// checkLoopback is checkEnds with a local address. The other address must be one too, or the card's.
func (p *Port) checkLoopback(from, to netip.Addr) (netip.Addr, netip.Addr, error) {
	switch {
	case from.IsUnspecified() && from.Is4() == to.Is4():
		from = loopbackAddress(to)
	case to.IsUnspecified() && from.Is4() == to.Is4():
		to = from
	}
	switch _, err := p.LoopbackEnd(from, to); {
	case err != nil:
		return from, to, err
	case from.Is4() != to.Is4():
		return from, to, fmt.Errorf("%w: source %v and destination %v differ in their IP version", verbs.ErrInvalid, from, to)
	case !p.Local(to) && !p.Has(wire.GIDFromAddr(to)):
		return from, to, fmt.Errorf("%w: source %v does not leave the host, and destination %v is not of %s", verbs.ErrInvalid, from, to, p.Name())
	}
	return from, to, nil
}

// Local reports whether an address names the card without being one of its addresses: a loopback address, or an address
// of the machine, if the card's host stands for it.
func (p *Port) Local(a netip.Addr) bool {
	return a.IsLoopback() || p.machine != nil && a.IsValid() && !a.IsUnspecified() && !p.Has(wire.GIDFromAddr(a)) && p.machine.Owns(a)
}

// OneMachine reports whether local addresses also name the other cards with the same port numbers.
func (p *Port) OneMachine() bool { return p.machine != nil }

// LoopbackEnd returns the card's address that both ends use for a message between addresses of which one is local: the
// other one, or, if both are local, the card's best of that IP version, or else of the other.
func (p *Port) LoopbackEnd(from, to netip.Addr) (netip.Addr, error) {
	for _, a := range []netip.Addr{from, to} {
		if !p.Local(a) && !a.IsUnspecified() {
			return a.WithZone(""), nil
		}
	}
	for _, v4 := range []bool{from.Is4(), !from.Is4()} {
		if own, err := p.bestSource(v4); err == nil {
			return own, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%w: %v: %s has no address to reach itself; add one (ip address add)", verbs.ErrAddrNotAvail, from, p.Name())
}

// loopbackAddress returns 127.0.0.1 or ::1, by the IP version of an address.
func loopbackAddress(of netip.Addr) netip.Addr {
	if of.Is4() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}

// anyAddress returns 0.0.0.0 or ::, by the IP version of an address.
func anyAddress(of netip.Addr) netip.Addr {
	if of.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// bestSource returns an address of the port to send from: a link-local one only if there is no other.
func (p *Port) bestSource(v4 bool) (netip.Addr, error) {
	best := p.Now().GIDs.Best(v4)
	if best.IsZero() {
		return netip.Addr{}, fmt.Errorf("%w: %s has no address of that IP version to send from; add one (ip address add)", verbs.ErrNoGID, p.Name())
	}
	return best.Addr(), nil
}

// Own checks an address to bind to: one of the card's, a local address, or the unspecified address.
func (p *Port) Own(a netip.Addr) (netip.Addr, error) {
	a = a.Unmap()
	zone := a.Zone()
	switch {
	case !a.IsValid():
		return a, fmt.Errorf("%w: no address; use 0.0.0.0 or :: for all", verbs.ErrInvalid)
	case a.IsUnspecified():
		return a, nil
	case p.Local(a):
		_, err := p.LoopbackEnd(a, a)
		return a.WithZone(""), err
	case a.IsLinkLocalUnicast() && a.Is6() && zone == "":
		return a, fmt.Errorf("%w: %v without its interface; write %[2]v%%%s", verbs.ErrInvalid, a, p.Name())
	case zone != "" && zone != p.Name() || !p.Has(wire.GIDFromAddr(a)):
		return a, fmt.Errorf("%w: %v is not an address of %s", verbs.ErrAddrNotAvail, a, p.Name())
	case !a.IsLinkLocalUnicast(): // its zone has no meaning
		a = a.WithZone("")
	}
	return a, nil
}
