package verbs

import (
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
	Port uint8 // 1
	SL   uint8 // 0 to 7; Ethernet priority is not set from it
}

// AH is an address handle: a destination, resolved (ibv_ah).
type AH struct {
	pd     *PD
	handle Handle
	closed atomic.Bool
	attr   AHAttr
}

// CreateAH resolves an address: a route lookup, and the neighbour's hardware
// address, which may take up to a few seconds. ErrUnreachable if there is no
// route or nobody answers, ErrNoGID if the source GID's line is empty.
func (p *PD) CreateAH(attr *AHAttr) (*AH, error) {
	if attr.SL > 7 {
		return nil, fmt.Errorf("create AH: %w: service level %d, at most 7", ErrInvalid, attr.SL)
	}
	handle, err := p.ctx.provider.CreateAH(p.handle, *attr)
	if err != nil {
		return nil, fmt.Errorf("create AH to %v: %w", attr.GRH.DGID, err)
	}
	return &AH{pd: p, handle: handle, attr: *attr}, nil
}

// Query gives what the handle was made with (rdma_query_ah).
func (a *AH) Query() AHAttr { return a.attr }

// Close destroys the handle. Requests that name it and have not been sent yet
// complete with WCLocQPOpErr, whatever handles are made meanwhile.
func (a *AH) Close() error {
	if err := a.pd.ctx.provider.DestroyAH(a.handle); err != nil {
		return fmt.Errorf("destroy AH: %w", err)
	}
	a.closed.Store(true)
	return nil
}

// AHAttrFromWC gives the address to answer a completion's sender at: the GRH's
// source, from the address that it was sent to (ibv_init_ah_from_wc).
func (c *Context) AHAttrFromWC(wc *WC, grh GRH, port uint8) (AHAttr, error) {
	if wc.Flags&WCGRH == 0 || grh.IPVersion() == 0 {
		return AHAttr{}, fmt.Errorf("%w: the completion has no GRH", ErrInvalid)
	}
	own := grh.DGID()
	entries, err := c.GIDs(port)
	if err != nil {
		return AHAttr{}, err
	}
	for _, entry := range entries {
		// An answer to a group goes out from the first address of its family.
		if entry.GID == own || own.IsMulticast() && entry.GID.IsIPv4() == own.IsIPv4() {
			route := GlobalRoute{DGID: grh.SGID(), SGIDIndex: entry.Index, FlowLabel: grh.FlowLabel(), HopLimit: 0, TrafficClass: grh.TrafficClass()}
			return AHAttr{GRH: route, Port: port}, nil
		}
	}
	return AHAttr{}, fmt.Errorf("%w: %v, which the packet was sent to, has gone", ErrNoGID, own)
}

// CreateAHFromWC makes the handle to answer a completion's sender
// (ibv_create_ah_from_wc).
func (p *PD) CreateAHFromWC(wc *WC, grh GRH, port uint8) (*AH, error) {
	attr, err := p.ctx.AHAttrFromWC(wc, grh, port)
	if err != nil {
		return nil, fmt.Errorf("create AH from completion: %w", err)
	}
	return p.CreateAH(&attr)
}
