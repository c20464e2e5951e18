// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// GlobalRoute is the route of a packet: GIDs, hop limit, traffic class and flow label (ibv_global_route).
//
// See [ib.GlobalRoute] for its fields.
type GlobalRoute = ib.GlobalRoute

// AHAttr describes an address (ibv_ah_attr). On Ethernet it consists of the route.
//
// See [ib.AHAttr] for its fields.
type AHAttr = ib.AHAttr

// AH is an address handle: a resolved destination (ibv_ah).
type AH struct {
	pd     *PD
	handle provider.Handle
	closed atomic.Bool
}

// CreateAH resolves an address (ibv_create_ah): it looks up the route and waits for the neighbour's hardware address
// until ctx is done, at most about four seconds. CreateAHFromWC never waits. The card follows later changes of route
// and neighbour.
//
// ErrUnreachable if there is no route or the neighbour does not respond (with the context's error, if that ended the
// wait); ErrNoGID if the source GID index is not in use, ErrInvalid if it exceeds the table; ErrLimit if more than 64
// neighbours of the user have not responded for as long, or if cards' neighbours fill half of the kernel's neighbour
// table.
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
	grant, err := provider.DoContext(ctx, p.ctx.provider, provider.CreateAH, provider.CreateAHRequest{PD: p.handle, Attr: *attr, NoWait: noWait})
	if err != nil {
		return nil, fmt.Errorf("create AH to %v: %w", attr.GRH.DGID, err)
	}
	return &AH{pd: p, handle: grant.AH}, nil
}

// Modify changes the handle to another address (rdma_modify_ah). It waits for the neighbour, as CreateAH does;
// meanwhile requests use the old address. Each request uses either the old or the new address; requests that run after
// Modify has returned use the new one. If Modify fails, the handle is unchanged.
func (a *AH) Modify(ctx context.Context, attr *AHAttr) error {
	if err := checkContext(ctx); err != nil {
		return fmt.Errorf("modify AH: %w", err)
	}
	if a == nil || attr == nil {
		return fmt.Errorf("modify AH: %w", errNil)
	}
	if err := provider.ExecContext(ctx, a.pd.ctx.provider, provider.ModifyAH, provider.ModifyAHRequest{AH: a.handle, Attr: *attr}); err != nil {
		return fmt.Errorf("modify AH to %v: %w", attr.GRH.DGID, err)
	}
	return nil
}

// Query returns the attributes in the card: the requested ones, with the effective hop limit (rdma_query_ah).
func (a *AH) Query() (AHAttr, error) {
	if a == nil {
		return AHAttr{}, fmt.Errorf("query AH: %w", errNil)
	}
	grant, err := provider.Do(a.pd.ctx.provider, provider.QueryAH, provider.QueryAHRequest{AH: a.handle})
	if err != nil {
		return AHAttr{}, fmt.Errorf("query AH: %w", err)
	}
	return grant.Attr, nil
}

// Close destroys the handle (ibv_destroy_ah). Requests that use it and have not been sent yet complete with
// WCLocQPOpErr.
func (a *AH) Close() error {
	if a == nil {
		return fmt.Errorf("destroy AH: %w", errNil)
	}
	if err := provider.Exec(a.pd.ctx.provider, provider.DestroyAH, provider.DestroyAHRequest{AH: a.handle}); err != nil {
		return fmt.Errorf("destroy AH: %w", err)
	}
	a.closed.Store(true)
	return nil
}
