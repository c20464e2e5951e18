// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"slices"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
)

// tables are set by the control plane. They change only in Do.
type tables struct {
	mtu        int // bytes of payload
	vlan       uint16
	down       bool // the link is down: packets to send are dropped
	own        map[wire.GID]struct{}
	broadcasts map[wire.GID]struct{}
	macs       []wire.MAC         // of the interface; none: any destination MAC is accepted
	passed     passedPair         // addresses of the last packet that passed checkAddresses
	groups     map[wire.GID][]*QP // queue pairs attached to each group
	qps        *[maxQPs]*QP       // indexed by QPN modulo maxQPs
	count      int                // number of queue pairs in qps
	fetched    uint32             // see fetch
}

// setAddresses replaces the card's own addresses.
func (t *tables) setAddresses(own []wire.GID) {
	clear(t.own)
	for _, gid := range own {
		t.own[gid] = struct{}{}
	}
	t.passed = passedPair{}
}

// setBroadcasts replaces the broadcast addresses of the card's subnets, which are not valid as source addresses.
func (t *tables) setBroadcasts(broadcasts []wire.GID) {
	t.broadcasts = map[wire.GID]struct{}{}
	for _, gid := range broadcasts {
		t.broadcasts[gid] = struct{}{}
	}
	t.passed = passedPair{}
}

// setMACs replaces the card's own MACs: unicast frames to other MACs are dropped. Without MACs, which is the default,
// all unicast frames are accepted.
func (t *tables) setMACs(macs ...wire.MAC) { t.macs = macs }

// setMTU changes the maximum payload that is sent and received.
func (t *tables) setMTU(mtu wire.MTU) { t.mtu = mtu.Bytes() }

// carries reports whether a payload of length bytes fits the MTUs of both the port and the path.
func (t *tables) carries(path *Path, length int) bool {
	return length <= t.mtu && (path.mtu == 0 || length <= path.mtu)
}

// checkAddresses checks a packet's VLAN, destination MAC and IP addresses, because switches flood unicast frames and
// may reflect frames that this card sent. Consecutive packets are often between the same two hosts, so the last pair of
// addresses that passed is cached. The steering program makes the same checks; its source (bpf/headers.h) marks those
// that the kernel's IP stack makes too.
func (t *tables) checkAddresses(p *wire.Packet) (*passedPair, Drop) {
	passed := &t.passed
	if id, tagged := p.VLAN(); tagged != (t.vlan != 0) || tagged && id != t.vlan {
		return passed, DropVLAN
	}
	if mac := p.DestinationMAC(); !mac.IsGroup() && len(t.macs) > 0 && !slices.Contains(t.macs, mac) {
		return passed, DropOtherHost
	}
	pair := p.Addresses()
	if string(pair) == string(passed.addresses[:passed.length]) {
		return passed, DropNone
	}
	dest := p.Destination()
	reason := t.checkDestination(dest, p.IsIPv6())
	if reason == DropNone && !passed.hasSource(pair) {
		reason = t.checkSource(p.Source(), p.IsIPv6())
	}
	if reason != DropNone {
		return passed, reason
	}
	passed.length = copy(passed.addresses[:], pair)
	passed.group = dest.IsMulticast()
	passed.members = nil
	if !dest.StaysInHost() {
		passed.members = t.groups[dest]
	}
	return passed, DropNone
}

// checkDestination checks a destination address. An IPv4-mapped address in an IPv6 header is not accepted.
func (t *tables) checkDestination(dest wire.GID, v6 bool) Drop {
	mapped, own := v6 && dest.IsIPv4(), dest.IsMulticast()
	if !own {
		_, own = t.own[dest]
	}
	if mapped || !own {
		return DropNotOwn
	}
	return DropNone
}

// checkSource checks a source address that differs from the cached one.
func (t *tables) checkSource(source wire.GID, v6 bool) Drop {
	_, own := t.own[source]
	_, broadcast := t.broadcasts[source]
	mapped := v6 && source.IsIPv4()
	switch {
	case !mapped && source.IsMulticast():
		return DropGroupSource
	case mapped, source.IsMartian():
		return DropMartianSource
	case own:
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
	group     bool  // the destination is a multicast group
	members   []*QP // queue pairs attached to the group
}

// hasSource reports whether the source of pair equals that of passed.
func (passed *passedPair) hasSource(pair []byte) bool {
	half := passed.length / 2
	return passed.length == len(pair) && string(pair[:half]) == string(passed.addresses[:half])
}

const (
	// fetchAhead is the number of packets that fetch reads ahead.
	fetchAhead = 16
	// fetchFrom is the minimum number of queue pairs for which fetch is used; fewer queue pairs stay in the cache.
	fetchFrom = 256
)

// fetch prefetches the memory that the next packets of a burst need: some cache lines of each queue pair. With
// thousands of queue pairs these are rarely in the processor's cache, and a cache miss takes half as long as all other
// work for a packet. Reading them together lets the processor load them in parallel.
//
// It reads only the engine's own memory, because memory shared with a program may be unmapped.
func (t *tables) fetch(from link.Link) {
	sum := uint32(0)
	for n := range fetchAhead {
		frame := from.Behind(n)
		if frame == nil {
			break
		}
		if qp := t.qps[wire.GuessDestQP(frame)%maxQPs]; qp != nil {
			sum += uint32(qp.State) + qp.service.touch()
			if qp.Recv != nil {
				sum += qp.Recv.Entries()
			}
		}
	}
	t.fetched = sum // so that the reads are not optimised away
}
