// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// CreateQP creates the id's queue pair (rdma_create_qp). A queue pair for datagrams can send and receive afterwards. A
// queue pair for connections is in INIT: receives can be posted. It can receive and send after Accept has returned, or
// after Get has returned EventEstablished instead of EventConnectResponse; Get makes the changes of state. As with
// verbs.PD.CreateQP, init.Cap is set to the granted capacities.
//
// If a connection's queue pair has no receive, the peer retransmits after 0.64 ms, as with ibv_rc_pingpong and
// perftest; SetMinRNRTimer changes that.
//
// The PD must be of the id's device; type 0 means the id's type. For an id of XRC_RECV, init.XRCD creates the queue
// pair, and pd is ignored. verbs.ErrInvalid if the id is not bound to a device, or already has a queue pair.
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
		return nil, fmt.Errorf("%w: the PD or the attributes are nil", verbs.ErrInvalid)
	case i.qp != nil:
		return nil, fmt.Errorf("%w: the id already has a queue pair", verbs.ErrInvalid)
	case i.qpType() == verbs.QPTypeXRCRecv && init.XRCD.Context() != p.ctx:
		return nil, fmt.Errorf("%w: an XRC domain of the id's device is needed", verbs.ErrInvalid)
	case i.qpType() != verbs.QPTypeXRCRecv && pd.Context() != p.ctx:
		return nil, fmt.Errorf("%w: the PD belongs to another device than the id", verbs.ErrInvalid)
	}
	attr := *init
	if attr.Type == 0 {
		attr.Type = i.qpType()
	}
	if attr.Type != i.qpType() {
		return nil, fmt.Errorf("%w: queue pair type %v; the id, in port space %v, needs %v", verbs.ErrInvalid, attr.Type, i.space, i.qpType())
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

// firstStates returns the states that a new queue pair passes through.
func (s *spread) firstStates() []verbs.QPState {
	if s.connects() {
		return allStates[:1]
	}
	return allStates
}

// allStates are the states up to sending. A connection's queue pair is set to INIT twice, because the peer's access is
// known only later.
var allStates = []verbs.QPState{verbs.QPStateInit, verbs.QPStateRTR, verbs.QPStateRTS}

// connects reports whether the id's queue pair has one peer.
func (s *spread) connects() bool { return s.qpType() != verbs.QPTypeUD }

// bring changes a queue pair through states, with the attributes of the card, but with at most the READs and atomics of
// most, and with the id's RNR timer. The caller holds mu.
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

// checkMTU returns an error with both ends' MTUs if the peer's exceeds the device's, which a queue pair here cannot
// have.
func (p part) checkMTU(attr *verbs.QPAttr, mask verbs.QPAttrMask) error {
	port, err := p.ctx.QueryPort(1)
	if err != nil || mask&verbs.QPAttrPathMTU == 0 || attr.PathMTU <= port.ActiveMTU {
		return nil
	}
	return fmt.Errorf("%w: the path MTU of the requester %v is %d bytes, this device's is %d; set the same MTU on both interfaces, or a smaller one on the requester's",
		verbs.ErrInvalid, attr.AHAttr.GRH.DGID.Addr(), attr.PathMTU.Bytes(), port.ActiveMTU.Bytes())
}

// respond processes the peer's acceptance for an id with a queue pair: it can send when the program gets the event,
// which is then EventEstablished. If that fails, the connection is rejected.
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
	_ = i.failQP() // fails if the queue pair is closed, or its device is closed or has failed
}

func (p part) qpAttr(state verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	grant, err := provider.Do(p.provider, provider.InitIDQPAttr, provider.InitIDQPAttrRequest{ID: p.handle, State: state})
	return grant.Attr, grant.Mask, err
}

// InitQPAttr returns the attributes for changing a queue pair created by the program to INIT, RTR or RTS
// (rdma_init_qp_attr). verbs.ErrInvalid if the id is not bound to a device; for a connection's RTR and RTS also before
// the peer has responded. MinRNRTimer is 0 as in rdma_cm, which means 655.36 ms: set another value
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

// QP returns the queue pair that CreateQP created, or nil.
func (i *ID) QP() *verbs.QP {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.qp
}

// DestroyQP destroys the id's queue pair (rdma_destroy_qp), after detaching it from the id's groups. If the device is
// closed or has failed, the queue pair no longer exists, and the id can be closed.
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

// isGone reports whether a queue pair no longer exists: the program has closed it, or its device is closed or has
// failed.
func isGone(err error) bool {
	return errors.Is(err, verbs.ErrObjectClosed) || errors.Is(err, verbs.ErrClosed) || errors.Is(err, verbs.ErrDeviceFatal)
}
