package datapath

import (
	"slices"

	"github.com/roced/roced/datapath/wire"
)

// checkAddresses compares a packet with the card's own addresses, because switches flood unicast
// and reflect frames that we sent. Many packets in a row are of the same two hosts, so the last
// pair that passed is kept. The steering program makes the same checks; its source (bpf/headers.h)
// says which of them are the kernel's rules.
func (e *Engine) checkAddresses(p *wire.Packet) (*passedPair, Drop) {
	passed := &e.passed
	if id, tagged := p.VLAN(); tagged != (e.vlan != 0) || tagged && id != e.vlan {
		return passed, DropVLAN
	}
	if mac := p.DestinationMAC(); !mac.IsGroup() && len(e.macs) > 0 && !slices.Contains(e.macs, mac) {
		return passed, DropOtherHost
	}
	pair := p.Addresses()
	if string(pair) == string(passed.addresses[:passed.length]) {
		return passed, DropNone
	}
	source, dest := p.Source(), p.Destination()
	if reason := e.checkPair(source, dest, p.IsIPv6()); reason != DropNone {
		return passed, reason
	}
	passed.length = copy(passed.addresses[:], pair)
	passed.group = dest.IsMulticast()
	passed.members = nil
	if !dest.StaysInHost() {
		passed.members = e.groups[dest]
	}
	return passed, DropNone
}

// checkPair checks a pair of addresses that differs from the last one.
func (e *Engine) checkPair(source, dest wire.GID, v6 bool) Drop {
	_, ownSource := e.own[source]
	_, ownDest := e.own[dest]
	_, broadcast := e.broadcasts[source]
	mapped := v6 && (source.IsIPv4() || dest.IsIPv4()) // IPv4-mapped addresses in an IPv6 header
	switch {
	case mapped && dest.IsIPv4(), !ownDest && !dest.IsMulticast():
		return DropNotOwn
	case !mapped && source.IsMulticast():
		return DropGroupSource
	case mapped, source.IsMartian():
		return DropMartianSource
	case ownSource:
		return DropOwnSource
	case broadcast:
		return DropMartianSource
	}
	return DropNone
}

// passedPair holds the addresses of the last packet that passed checkAddresses.
type passedPair struct {
	addresses [32]byte
	length    int
	group     bool  // the destination is a group
	members   []*QP // of the group
}
