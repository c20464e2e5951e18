package cm

import (
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// CreateQP makes the id's queue pair (rdma_create_qp). One for datagrams can send and receive when this
// returns. One for connections is in INIT: receives can be posted. It can receive and send when Accept has
// returned, or when Get has given EventEstablished instead of EventConnectResponse; Get takes it there. As with
// verbs.PD.CreateQP, init.Cap is set to what was granted.
//
// Where a connection's queue pair has no receive, the peer waits 0.64 ms and sends again, as with ibv_rc_pingpong
// and perftest; SetMinRNRTimer says otherwise.
//
// The PD is of the id's device; a type of 0 is the id's. Of an id for XRC_RECV init.XRCD makes the queue pair, and pd
// does not count. verbs.ErrInvalid if the id is not bound to a device, or has a queue pair.
func (i *ID) CreateQP(pd *verbs.PD, init *verbs.QPInitAttr) (*verbs.QP, error) {
	if i == nil {
		return nil, fmt.Errorf("create the id's QP: %w", errNil)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	qp, err := i.createQP(pd, init)
	if err != nil {
		return nil, fmt.Errorf("create the id's QP: %w", err)
	}
	i.qp, i.srq = qp, init.SRQ != nil
	return qp, nil
}

func (i *ID) createQP(pd *verbs.PD, init *verbs.QPInitAttr) (*verbs.QP, error) {
	p, err := i.one()
	switch {
	case err != nil:
		return nil, err
	case init == nil || pd == nil && i.qpType() != verbs.QPTypeXRCRecv:
		return nil, fmt.Errorf("%w: no PD, or no attributes", verbs.ErrInvalid)
	case i.qp != nil:
		return nil, fmt.Errorf("%w: the id has a queue pair already", verbs.ErrInvalid)
	case i.qpType() == verbs.QPTypeXRCRecv && init.XRCD.Context() != p.ctx:
		return nil, fmt.Errorf("%w: no XRC domain of the id's device", verbs.ErrInvalid)
	case i.qpType() != verbs.QPTypeXRCRecv && pd.Context() != p.ctx:
		return nil, fmt.Errorf("%w: the PD belongs to another device than the id", verbs.ErrInvalid)
	}
	attr := *init
	if attr.Type == 0 {
		attr.Type = i.qpType()
	}
	if attr.Type != i.qpType() {
		return nil, fmt.Errorf("%w: a queue pair of type %v; the id, in port space %v, is for %v", verbs.ErrInvalid, attr.Type, i.space, i.qpType())
	}
	if _, _, err := p.qpAttr(verbs.QPStateInit); err != nil {
		return nil, err
	}
	create := pd.CreateQP
	if attr.Type == verbs.QPTypeXRCRecv {
		create = attr.XRCD.CreateQP
	}
	qp, err := create(&attr)
	if err != nil {
		return nil, err
	}
	if err := i.bring(p, qp, &ConnParam{}, i.firstStates()...); err != nil {
		return nil, errors.Join(err, qp.Close())
	}
	init.Cap = attr.Cap
	return qp, nil
}

func (s *spread) qpType() verbs.QPType {
	switch {
	case s.kind != 0:
		return s.kind
	case s.space == PortSpaceTCP:
		return verbs.QPTypeRC
	}
	return verbs.QPTypeUD
}

// firstStates are those that a new queue pair goes through.
func (s *spread) firstStates() []verbs.QPState {
	if s.connects() {
		return allStates[:1]
	}
	return allStates
}

// allStates are those on the way to sending. A connection's queue pair comes to INIT twice: when it is there,
// the peer's access is known.
var allStates = []verbs.QPState{verbs.QPStateInit, verbs.QPStateRTR, verbs.QPStateRTS}

// connects says whether the id's queue pair has one peer.
func (s *spread) connects() bool { return s.qpType() != verbs.QPTypeUD }

// bring takes a queue pair through states, with the attributes that the card gives, but with no more READs and
// atomics at once than most has, and with the id's RNR timer. The caller holds mu.
func (i *ID) bring(p part, qp *verbs.QP, most *ConnParam, states ...verbs.QPState) error {
	for _, state := range states {
		attr, mask, err := p.qpAttr(state)
		if err != nil {
			return err
		}
		attr.MaxDestRDAtomic = min(attr.MaxDestRDAtomic, most.ResponderResources)
		attr.MaxRDAtomic = min(attr.MaxRDAtomic, most.InitiatorDepth)
		attr.MinRNRTimer = i.minRNRTimer
		if err := qp.Modify(&attr, mask); err != nil {
			return errors.Join(p.checkMTU(&attr, mask), err)
		}
	}
	return nil
}

// checkMTU names both ends' MTU if the peer's is the larger one, which a queue pair here cannot have.
func (p part) checkMTU(attr *verbs.QPAttr, mask verbs.QPAttrMask) error {
	port, err := p.ctx.QueryPort(1)
	if err != nil || mask&verbs.QPAttrPathMTU == 0 || attr.PathMTU <= port.ActiveMTU {
		return nil
	}
	return fmt.Errorf("%w: the path MTU of the requester, %v, is %d bytes, and this device's is %d: give both interfaces the same MTU, or the requester's the smaller",
		verbs.ErrInvalid, attr.AHAttr.GRH.DGID.Addr(), attr.PathMTU.Bytes(), port.ActiveMTU.Bytes())
}

// respond takes the peer's acceptance for an id that has a queue pair: this can send when the program gets the
// event, which is then EventEstablished. If that fails, the peer is rejected.
func (i *ID) respond(e *Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p, err := i.one()
	if err != nil || i.qp == nil {
		return
	}
	all := ConnParam{ResponderResources: MaxResources, InitiatorDepth: MaxResources}
	if err = i.bring(p, i.qp, &all, allStates...); err == nil {
		err = provider.Exec(p.provider, provider.AcceptID, provider.AcceptIDRequest{ID: p.handle, Response: true})
	}
	if err == nil {
		e.Type = EventEstablished
		return
	}
	_ = provider.Exec(p.provider, provider.RejectID, provider.RejectIDRequest{ID: p.handle}) // if it fails, no peer is waiting
	_ = i.failQP()
	e.fail(EventConnectError, err)
}

// rejected takes the id's queue pair to ERR, as librdmacm does.
func (i *ID) rejected() {
	i.mu.Lock()
	defer i.mu.Unlock()
	_ = i.failQP() // else it is closed, or its device gone
}

func (p part) qpAttr(state verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	grant, err := provider.Do(p.provider, provider.InitIDQPAttr, provider.InitIDQPAttrRequest{ID: p.handle, State: state})
	return grant.Attr, grant.Mask, err
}

// InitQPAttr gives the attributes by which a queue pair of the program's own comes to a state, INIT,
// RTR or RTS (rdma_init_qp_attr). verbs.ErrInvalid if the id is not bound to a device; of a connection, for
// RTR and RTS before the peer has answered. MinRNRTimer is rdma_cm's 0, which is 655.36 ms: set another
// (verbs.RNRTimerCode).
func (i *ID) InitQPAttr(state verbs.QPState) (attr verbs.QPAttr, mask verbs.QPAttrMask, err error) {
	if i == nil {
		return verbs.QPAttr{}, 0, fmt.Errorf("attributes of the id's QP: %w", errNil)
	}
	err = i.do("attributes of the id's QP", func(p part) (err error) {
		attr, mask, err = p.qpAttr(state)
		return err
	})
	return attr, mask, err
}

// QP is the queue pair that CreateQP made; nil if there is none.
func (i *ID) QP() *verbs.QP {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.qp
}

// DestroyQP destroys the id's queue pair (rdma_destroy_qp). What the id has attached it to, it is
// detached from first. One whose device is gone went with it, and the id can be closed.
func (i *ID) DestroyQP() error {
	if i == nil {
		return fmt.Errorf("destroy the id's QP: %w", errNil)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.qp == nil {
		return fmt.Errorf("destroy the id's QP: %w: it has none", verbs.ErrInvalid)
	}
	i.joins.detachAll(i.qp)
	if err := i.qp.Close(); err != nil && !isGone(err) {
		return fmt.Errorf("destroy the id's QP: %w", err)
	}
	i.qp = nil
	return nil
}

// isGone says that a queue pair is gone already: the program has closed it, or it was its device's.
func isGone(err error) bool {
	return errors.Is(err, verbs.ErrObjectClosed) || errors.Is(err, verbs.ErrClosed) || errors.Is(err, verbs.ErrDeviceFatal)
}
