// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"

	"github.com/roced/roced/datapath/wire"
)

// ecnBits are the bits of a traffic class that report congestion on the path (RFC 3168). A response does not copy them,
// because they do not describe the return path.
const ecnBits = 3

// InitAHFromWC returns the attributes for a response to a completion's sender (ibv_init_ah_from_wc). The destination is
// the source of the GRH, and the source is the address that the message was sent to. If that was a group, the source is
// an address of the same IP version: a link-local one only if the sender's is link-local, or if there is no other.
// Traffic class (except ECN), flow label and service level are the message's; the hop limit is 64, the default of
// routes, where the kernel uses that of the route. As in the kernel, the completion's NetworkHeader identifies the
// header if it is present (WCWithNetworkHdrType); otherwise the header is inspected.
func (c *Context) InitAHFromWC(wc *WC, grh GRH, port uint8) (AHAttr, error) {
	if wc == nil {
		return AHAttr{}, errNil
	}
	sender, own, err := gidsOf(wc, grh)
	if err != nil {
		return AHAttr{}, err
	}
	if sender.IsMulticast() {
		return AHAttr{}, fmt.Errorf("%w: the sender's address %v is a multicast address and cannot be a destination of a response", ErrInvalid, sender)
	}
	entries, err := c.QueryGIDTable(port)
	if err != nil {
		return AHAttr{}, err
	}
	source, ok := answerFrom(entries, own, sender)
	if !ok {
		return AHAttr{}, fmt.Errorf("%w: the packet was sent to %v, which is no longer an address of this port", ErrNoGID, own)
	}
	return AHAttr{Port: port, SL: wc.SL, GRH: GlobalRoute{
		DGID: sender, SGIDIndex: source, FlowLabel: grh.FlowLabel(), TrafficClass: grh.TrafficClass() &^ ecnBits, HopLimit: wire.DefaultHopLimit,
	}}, nil
}

// gidsOf returns a message's sender and destination.
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
		return sender, own, fmt.Errorf("%w: network type %d; RoCE v2 uses NetworkIPv4 (2) and NetworkIPv6 (3)", ErrInvalid, uint8(network))
	}
	return sender, own, nil
}

// answerFrom chooses the source GID of a response. If index 0 repeats an address, the address's own entry comes later
// in the table and is chosen.
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

// CreateAHFromWC creates a handle for responses to a completion's sender (ibv_create_ah_from_wc). It never waits. If
// the sender's hardware address is not known, the card resolves it and meanwhile holds up to 64 packets. If the
// neighbour does not respond, the card drops them and counts them as unreachable.
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
