package verbs

import (
	"context"
	"fmt"

	"github.com/roced/roced/datapath/wire"
)

// ecnBits of a traffic class report congestion on the path (RFC 3168). An answer does not repeat
// them: they say nothing about the path back.
const ecnBits = 3

// InitAHFromWC gives the attributes for an answer to a completion's sender (ibv_init_ah_from_wc).
// The answer goes to the GRH's source, from the address that the message was sent to. If that was
// a group, it goes from an address of the same IP version: a link-local one only if the sender's is
// link-local, or if there is no other. Traffic class (except ECN), flow label and service level are
// the message's; the hop limit is 64, the default of routes, which the kernel has from the route. As there, the
// completion's NetworkHeader says which header it is, if the completion has it (WCWithNetworkHdrType), else the
// header itself does.
func (c *Context) InitAHFromWC(wc *WC, grh GRH, port uint8) (AHAttr, error) {
	if wc == nil {
		return AHAttr{}, errNil
	}
	sender, own, err := gidsOf(wc, grh)
	if err != nil {
		return AHAttr{}, err
	}
	if sender.IsMulticast() {
		return AHAttr{}, fmt.Errorf("%w: the sender's address %v is a group's, and cannot be answered", ErrInvalid, sender)
	}
	entries, err := c.QueryGIDTable(port)
	if err != nil {
		return AHAttr{}, err
	}
	source, ok := answerFrom(entries, own, sender)
	if !ok {
		return AHAttr{}, fmt.Errorf("%w: the packet was sent to %v, which this port does not have any more", ErrNoGID, own)
	}
	return AHAttr{Port: port, SL: wc.SL, GRH: GlobalRoute{
		DGID: sender, SGIDIndex: source, FlowLabel: grh.FlowLabel(), TrafficClass: grh.TrafficClass() &^ ecnBits, HopLimit: wire.DefaultHopLimit,
	}}, nil
}

// gidsOf gives a message's sender and destination.
func gidsOf(wc *WC, grh GRH) (sender, own GID, err error) {
	version := grh.IPVersion()
	if wc.Flags&WCGRH == 0 || version == 0 {
		return sender, own, fmt.Errorf("%w: the completion has no GRH", ErrInvalid)
	}
	network := wc.NetworkHeader
	if wc.Flags&WCWithNetworkHdrType == 0 {
		if network = NetworkIPv6; version == 4 {
			network = NetworkIPv4
		}
	}
	sender, own, ok := network.GIDs(grh)
	if !ok {
		return sender, own, fmt.Errorf("%w: network type %d; RoCE v2 has NetworkIPv4 and NetworkIPv6, of 0 to 3", ErrInvalid, uint8(network))
	}
	return sender, own, nil
}

// answerFrom chooses the GID that an answer is sent from. If index 0 repeats an address, its own
// entry comes later in the table and is the one that is chosen.
func answerFrom(entries []GIDEntry, own, peer GID) (index int, ok bool) {
	suits := false
	for _, entry := range entries {
		same := entry.GID.IsLinkLocal() == peer.IsLinkLocal()
		switch {
		case entry.GID == own:
			index, ok = entry.Index, true
		case !own.IsMulticast() || entry.GID.IsIPv4() != own.IsIPv4() || suits && !same:
		case !ok || same && !suits:
			index, ok, suits = entry.Index, true, same
		}
	}
	return index, ok
}

// CreateAHFromWC makes a handle for answers to a completion's sender (ibv_create_ah_from_wc). It
// never waits. If the sender's hardware address is not known, the card asks for it and holds up to
// 64 packets meanwhile. If nobody answers it drops them and counts them as unreachable.
func (p *PD) CreateAHFromWC(wc *WC, grh GRH, port uint8) (*AH, error) {
	if p == nil {
		return nil, fmt.Errorf("create AH from completion: %w", errNil)
	}
	attr, err := p.ctx.InitAHFromWC(wc, grh, port)
	if err != nil {
		return nil, fmt.Errorf("create AH from completion: %w", err)
	}
	return p.createAH(context.Background(), &attr, true)
}
