package datapath

import (
	"slices"

	"github.com/roced/roced/datapath/wire"
)

// checkAddresses holds a packet against the device's own addresses: switches
// flood unicast, and reflect what we sent. Packet after packet is of the same two
// hosts, so the last pair that passed is kept. The steering program (bpf) makes the same
// checks, and says what of them is the kernel's rule.
func (e *Engine) checkAddresses(p *wire.Packet) (Drop, bool) {
	if id, tagged := p.VLAN(); tagged != (e.vlan != 0) || tagged && id != e.vlan {
		return DropVLAN, false
	}
	if mac := p.DestinationMAC(); !mac.IsGroup() && len(e.macs) > 0 && !slices.Contains(e.macs, mac) {
		return DropOtherHost, false
	}
	pair := p.Addresses()
	if string(pair) == string(e.passed.addresses[:e.passed.length]) {
		return 0, true
	}
	source, dest := p.Source(), p.Destination()
	if reason, ok := e.checkPair(source, dest, p.IsIPv6()); !ok {
		return reason, false
	}
	e.passed.length = copy(e.passed.addresses[:], pair)
	e.passed.group = dest.IsMulticast()
	e.passed.members = nil
	if !dest.StaysInHost() {
		e.passed.members = e.groups[dest]
	}
	return 0, true
}

// checkPair is checkAddresses for a pair of hosts that is new.
func (e *Engine) checkPair(source, dest wire.GID, v6 bool) (Drop, bool) {
	_, ownSource := e.own[source]
	_, ownDest := e.own[dest]
	_, broadcast := e.broadcasts[source]
	mapped := v6 && (source.IsIPv4() || dest.IsIPv4()) // IPv4's addresses, in an IPv6 header
	switch {
	case mapped && dest.IsIPv4(), !ownDest && !dest.IsMulticast():
		return DropNotOwn, false
	case !mapped && source.IsMulticast():
		return DropGroupSource, false
	case mapped, source.IsMartian():
		return DropMartianSource, false
	case ownSource:
		return DropOwnSource, false
	case broadcast:
		return DropMartianSource, false
	}
	return 0, true
}

// passedPair are the addresses of the last packet that checkAddresses let pass.
type passedPair struct {
	addresses [32]byte
	length    int
	group     bool  // the destination is a group
	members   []*QP // of the group
}
