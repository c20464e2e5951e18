package verbs

import (
	"context"
	"fmt"
	"sync/atomic"
)

// GlobalRoute is where a packet goes and how (ibv_global_route).
type GlobalRoute struct {
	DGID         GID
	SGIDIndex    int
	FlowLabel    uint32 // 20 bits; also picks the UDP source port
	HopLimit     uint8  // 0 stands for 64
	TrafficClass uint8
}

// AHAttr describes an address (ibv_ah_attr). On Ethernet the route is all there is.
type AHAttr struct {
	GRH  GlobalRoute
	Port uint8 // always 1
	SL   uint8 // service level, 0 to 7; the frames' Ethernet priority does not follow it
}

// AH is an address handle: a destination, resolved (ibv_ah).
type AH struct {
	pd     *PD
	handle Handle
	closed atomic.Bool
	attr   AHAttr
}

// CreateAH resolves an address (ibv_create_ah): it looks up the route, and waits for the
// neighbour's hardware address until ctx is done, at most about four seconds. ErrUnreachable if
// there is no route or nobody answers (with the context's error, if that ended the wait), ErrNoGID
// if the source GID's index is not in use. The card follows later changes of route and neighbour.
// CreateAHFromWC never waits.
func (p *PD) CreateAH(ctx context.Context, attr *AHAttr) (*AH, error) {
	return p.createAH(ctx, attr, false)
}

func (p *PD) createAH(ctx context.Context, attr *AHAttr, noWait bool) (*AH, error) {
	if err := checkContext(ctx); err != nil {
		return nil, fmt.Errorf("create AH: %w", err)
	}
	if p == nil || attr == nil {
		return nil, fmt.Errorf("create AH: %w", errNil)
	}
	grant, err := p.ctx.provider.CreateAH(ctx, CreateAHRequest{PD: p.handle, Attr: *attr, NoWait: noWait})
	if err != nil {
		return nil, fmt.Errorf("create AH to %v: %w", attr.GRH.DGID, err)
	}
	return &AH{pd: p, handle: grant.AH, attr: *attr}, nil
}

// Query gives what the handle was made with (rdma_query_ah).
func (a *AH) Query() AHAttr { return a.attr }

// Close destroys the handle (ibv_destroy_ah). Requests that name it and have not been sent yet
// complete with WCLocQPOpErr.
func (a *AH) Close() error {
	if a == nil {
		return fmt.Errorf("destroy AH: %w", errNil)
	}
	if err := a.pd.ctx.provider.DestroyAH(DestroyAHRequest{a.handle}); err != nil {
		return fmt.Errorf("destroy AH: %w", err)
	}
	a.closed.Store(true)
	return nil
}

// ecnBits of a traffic class report congestion on the path (RFC 3168). An answer does not repeat
// them: they say nothing about the path back.
const ecnBits = 3

// AHAttrFromWC gives the attributes for an answer to a completion's sender (ibv_init_ah_from_wc).
// The answer goes to the GRH's source, from the address that the message was sent to. If that was
// a group, it goes from an address of the same IP version: a link-local one only if the sender's is
// link-local, or if there is no other.
func (c *Context) AHAttrFromWC(wc *WC, grh GRH, port uint8) (AHAttr, error) {
	if wc == nil {
		return AHAttr{}, errNil
	}
	if wc.Flags&WCGRH == 0 || grh.IPVersion() == 0 {
		return AHAttr{}, fmt.Errorf("%w: the completion has no GRH", ErrInvalid)
	}
	entries, err := c.GIDs(port)
	if err != nil {
		return AHAttr{}, err
	}
	source, ok := answerFrom(entries, grh)
	if !ok {
		return AHAttr{}, fmt.Errorf("%w: the packet was sent to %v, which this port does not have any more", ErrNoGID, grh.DGID())
	}
	return AHAttr{Port: port, GRH: GlobalRoute{
		DGID: grh.SGID(), SGIDIndex: source, FlowLabel: grh.FlowLabel(), TrafficClass: grh.TrafficClass() &^ ecnBits,
	}}, nil
}

// answerFrom chooses the GID that an answer is sent from. If index 0 repeats an address, its own
// entry comes later in the table and is the one that is chosen.
func answerFrom(entries []GIDEntry, grh GRH) (index int, ok bool) {
	own, peer := grh.DGID(), grh.SGID()
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
	attr, err := p.ctx.AHAttrFromWC(wc, grh, port)
	if err != nil {
		return nil, fmt.Errorf("create AH from completion: %w", err)
	}
	return p.createAH(context.Background(), &attr, true)
}
