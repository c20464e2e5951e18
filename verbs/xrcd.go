// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"os"

	"github.com/roced/roced/verbs/provider"
)

// XRCD is an XRC domain (ibv_xrcd): a set of shared receive queues, and of target queue pairs whose peers may send to
// each of these queues. A host then needs one connection per peer process instead of one per pair of processes.
// Programs of one user share a domain by a file.
//
//	peer                                  this host
//	XRC_SEND queue pair ── connection ──► XRC_RECV queue pair ──► SRQ 1, its CQ: one process
//	  SendWR.RemoteSRQN selects the SRQ      of the domain   └──► SRQ 2, its CQ: another process
//
// Peers address memory by keys of the SRQ's PD.
type XRCD struct {
	ctx    *Context
	handle provider.Handle
}

// XRCDInitAttr selects the XRC domain to open (ibv_xrcd_init_attr).
type XRCDInitAttr struct {
	// File is a file whose inode identifies the domain, for all programs of the user that have it open; nil for a
	// domain of this context alone (fd -1). It may be closed afterwards.
	File *os.File
	// OFlags are os.O_CREATE, to create the domain if it does not exist, and os.O_EXCL, to fail if it exists. They are
	// ignored if File is nil.
	OFlags int
}

// OpenXRCD opens an XRC domain (ibv_open_xrcd). ErrInvalid, also EAGAIN, if it does not exist and OFlags lack
// os.O_CREATE; ErrInvalid if it exists and they have os.O_EXCL.
func (c *Context) OpenXRCD(attr *XRCDInitAttr) (*XRCD, error) {
	if c == nil || attr == nil {
		return nil, fmt.Errorf("open XRC domain: %w", errNil)
	}
	if unknown := attr.OFlags &^ (os.O_CREATE | os.O_EXCL); unknown != 0 {
		return nil, fmt.Errorf("open XRC domain: %w: unknown OFlags 0x%x; valid are os.O_CREATE and os.O_EXCL", ErrInvalid, unknown)
	}
	request := provider.OpenXRCDRequest{Create: attr.OFlags&os.O_CREATE != 0, Exclusive: attr.OFlags&os.O_EXCL != 0}
	if attr.File != nil {
		request.File = attr.File
	}
	grant, err := provider.Do(c.provider, provider.OpenXRCD, request)
	if err != nil {
		return nil, fmt.Errorf("open XRC domain: %w", err)
	}
	return &XRCD{c, grant.XRCD}, nil
}

// AllocXRCD creates an XRC domain of this context alone (ib_alloc_xrcd).
func (c *Context) AllocXRCD() (*XRCD, error) { return c.OpenXRCD(&XRCDInitAttr{}) }

// Context returns the context of the domain.
func (x *XRCD) Context() *Context {
	if x == nil {
		return nil
	}
	return x.ctx
}

// Close closes the domain (ibv_close_xrcd, ib_dealloc_xrcd). ErrBusy while SRQs and queue pairs created or opened with
// it exist. The domain is destroyed when all programs have closed it.
func (x *XRCD) Close() error {
	if x == nil {
		return fmt.Errorf("close XRC domain: %w", errNil)
	}
	if err := provider.Exec(x.ctx.provider, provider.CloseXRCD, provider.CloseXRCDRequest{XRCD: x.handle}); err != nil {
		return fmt.Errorf("close XRC domain: %w", err)
	}
	return nil
}

// CreateQP creates a target queue pair of the domain, of QPTypeXRCRecv, in RESET (ibv_create_qp_ex). It has no PD, no
// CQs and no queues: its peer's requests consume receives of the SRQs that they specify. Of the other fields of attr
// only the handler and the context are used.
func (x *XRCD) CreateQP(attr *QPInitAttr) (*QP, error) {
	switch {
	case x == nil || attr == nil:
		return nil, fmt.Errorf("create QP: %w", errNil)
	case attr.Type != QPTypeXRCRecv:
		return nil, fmt.Errorf("create QP: %w: an XRC domain has queue pairs of type XRC_RECV, not %v; PD.CreateQP creates others", ErrInvalid, attr.Type)
	}
	init := QPInitAttr{Type: QPTypeXRCRecv, EventHandler: attr.EventHandler, QPContext: attr.QPContext}
	qp, err := x.addQP(init, func(eventID uint64) (provider.OpenQPGrant, error) {
		return provider.Do(x.ctx.provider, provider.CreateXRCTarget, provider.CreateXRCTargetRequest{XRCD: x.handle, EventID: eventID})
	})
	if err != nil {
		return nil, fmt.Errorf("create QP: %w", err)
	}
	return qp, nil
}

// QPOpenAttr selects the queue pair that OpenQP opens (ibv_qp_open_attr, ib_qp_open_attr).
type QPOpenAttr struct {
	Number QPN
	// EventHandler receives the queue pair's asynchronous events of this handle, instead of GetAsyncEvent; see
	// QPInitAttr.EventHandler.
	EventHandler func(AsyncEvent)
	QPContext    any // returned by QP.QPContext, for the program's own use
}

// OpenQP opens a target queue pair of the domain, which this or another program has created (ibv_open_qp, ib_open_qp).
// All handles refer to the same queue pair for Modify and Query, and each gets its events. Close closes the handle
// (ib_close_qp); the queue pair is destroyed with its last handle. ErrInvalid if the domain has no queue pair of that
// number.
func (x *XRCD) OpenQP(attr *QPOpenAttr) (*QP, error) {
	if x == nil || attr == nil {
		return nil, fmt.Errorf("open QP: %w", errNil)
	}
	init := QPInitAttr{Type: QPTypeXRCRecv, EventHandler: attr.EventHandler, QPContext: attr.QPContext}
	qp, err := x.addQP(init, func(eventID uint64) (provider.OpenQPGrant, error) {
		return provider.Do(x.ctx.provider, provider.OpenQP, provider.OpenQPRequest{XRCD: x.handle, Number: attr.Number, EventID: eventID})
	})
	if err != nil {
		return nil, fmt.Errorf("open QP %v: %w", attr.Number, err)
	}
	return qp, nil
}

// addQP creates the program's end of a target that was created or opened.
func (x *XRCD) addQP(init QPInitAttr, open func(eventID uint64) (provider.OpenQPGrant, error)) (qp *QP, err error) {
	if init.EventHandler != nil {
		x.ctx.beginReading()
	}
	err = x.ctx.eventSources.add(func(eventID uint64) (any, error) {
		grant, err := open(eventID)
		if err != nil {
			return nil, err
		}
		qp = &QP{ctx: x.ctx, eventID: eventID, handle: grant.QP, number: grant.Number, init: init, connected: true, target: true}
		qp.state.Store(uint32(grant.State))
		return qp, nil
	})
	return qp, err
}

// xrcReceives is the additional state of an SRQ of type XRC: the completions of its receives carry a token like those
// of a queue pair, and are counted in receives instead.
type xrcReceives struct {
	number   SRQN
	cq       *CQ
	token    uint32
	receives QP
}

// Number returns the number that identifies an SRQ of type XRC to peers (ibv_get_srq_num), or 0 for other types.
func (q *SRQ) Number() SRQN {
	if q == nil || q.xrc == nil {
		return 0
	}
	return q.xrc.number
}

func (p *PD) createXRCSRQ(attr SRQInitAttr, eventID uint64) (*SRQ, error) {
	switch {
	case attr.Type == SRQTypeTM:
		return nil, fmt.Errorf("%w: tag matching", ErrUnsupported)
	case attr.Type != SRQTypeXRC:
		return nil, fmt.Errorf("%w: unknown SRQ type %d; valid are BASIC (0) and XRC (1)", ErrInvalid, uint8(attr.Type))
	case attr.XRCD == nil || attr.CQ == nil:
		return nil, fmt.Errorf("%w: an SRQ of type XRC needs an XRCD and a CQ", ErrInvalid)
	case attr.XRCD.ctx != p.ctx || attr.CQ.ctx != p.ctx:
		return nil, fmt.Errorf("%w: the XRC domain or the CQ belongs to another context", ErrInvalid)
	}
	token, err := p.ctx.slots.take()
	if err != nil {
		return nil, err
	}
	grant, err := provider.Do(p.ctx.provider, provider.CreateXRCSRQ, provider.CreateXRCSRQRequest{
		PD: p.handle, XRCD: attr.XRCD.handle, CQ: attr.CQ.handle, Attr: provider.SRQInitAttr{MaxWR: attr.MaxWR, MaxSGE: attr.MaxSGE},
		CompletionToken: token, EventID: eventID,
	})
	if err != nil {
		p.ctx.slots.release(token)
		return nil, err
	}
	q, err := p.newSRQ(attr, &grant.CreateSRQGrant, eventID)
	if err != nil {
		p.ctx.slots.release(token)
		return nil, err
	}
	q.xrc = &xrcReceives{number: grant.Number, cq: attr.CQ, token: token}
	p.ctx.slots.at(token).qp.Store(&q.xrc.receives)
	return q, nil
}

// end releases a queue that is destroyed; its completions are dropped.
func (x *xrcReceives) end(c *Context) {
	c.slots.release(x.token)
	x.cq.mu.Lock()
	defer x.cq.mu.Unlock()
	x.cq.purge()
}

// errTarget is the error of operations that a target queue pair lacks.
var errTarget = fmt.Errorf("%w: an XRC target (XRC_RECV) cannot send requests; its peer sends them", ErrInvalid)

// errInitiator is the error of operations that an initiator lacks.
var errInitiator = fmt.Errorf("%w: an XRC initiator (XRC_SEND) cannot receive; SRQs of type XRC receive through a target", ErrInvalid)

// closeTarget closes this handle of a target.
func (q *QP) closeTarget() error {
	q.modifyMu.Lock()
	defer q.modifyMu.Unlock()
	if err := provider.Exec(q.ctx.provider, provider.DestroyQP, provider.DestroyQPRequest{QP: q.handle}); err != nil {
		return fmt.Errorf("close QP %v: %w", q.number, err)
	}
	q.closed.Store(true)
	q.ctx.forget(q.eventID)
	return nil
}
