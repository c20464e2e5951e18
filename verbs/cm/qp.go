package cm

import (
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
)

// CreateQP makes the id's queue pair, and takes it through its states: one for datagrams can send and
// receive when this returns (rdma_create_qp). The PD is of the id's device; a type of 0 is that of the
// port space. verbs.ErrInvalid if the id is not bound to a device, or has a queue pair.
func (i *ID) CreateQP(pd *verbs.PD, init *verbs.QPInitAttr) (*verbs.QP, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	qp, err := i.createQP(pd, init)
	if err != nil {
		return nil, fmt.Errorf("create the id's QP: %w", err)
	}
	i.qp = qp
	return qp, nil
}

func (i *ID) createQP(pd *verbs.PD, init *verbs.QPInitAttr) (*verbs.QP, error) {
	p, err := i.one()
	switch {
	case err != nil:
		return nil, err
	case pd == nil || init == nil:
		return nil, fmt.Errorf("%w: no PD, or no attributes", verbs.ErrInvalid)
	case i.qp != nil:
		return nil, fmt.Errorf("%w: the id has a queue pair", verbs.ErrInvalid)
	case pd.Context() != p.ctx:
		return nil, fmt.Errorf("%w: the PD is of another device than the id", verbs.ErrInvalid)
	}
	attr := *init
	if attr.Type == 0 {
		attr.Type = i.qpType()
	}
	if attr.Type != i.qpType() {
		return nil, fmt.Errorf("%w: a queue pair of type %v; port space %v has %v", verbs.ErrInvalid, attr.Type, i.space, i.qpType())
	}
	if _, _, err := p.qpAttr(verbs.QPStateInit); err != nil {
		return nil, err
	}
	qp, err := pd.CreateQP(&attr)
	if err != nil {
		return nil, err
	}
	for _, state := range []verbs.QPState{verbs.QPStateInit, verbs.QPStateRTR, verbs.QPStateRTS} {
		attr, mask, err := p.qpAttr(state)
		if err == nil {
			err = qp.Modify(&attr, mask)
		}
		if err != nil {
			return nil, errors.Join(err, qp.Close())
		}
	}
	return qp, nil
}

func (i *ID) qpType() verbs.QPType {
	if i.space == PortSpaceTCP {
		return verbs.QPTypeRC
	}
	return verbs.QPTypeUD
}

func (p part) qpAttr(state verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	grant, err := p.provider.InitIDQPAttr(verbs.InitIDQPAttrRequest{ID: p.handle, State: state})
	return grant.Attr, grant.Mask, err
}

// InitQPAttr gives the attributes by which a queue pair of the program's own comes to a state, INIT,
// RTR or RTS (rdma_init_qp_attr). verbs.ErrInvalid if the id is not bound to a device.
func (i *ID) InitQPAttr(state verbs.QPState) (attr verbs.QPAttr, mask verbs.QPAttrMask, err error) {
	err = i.do("attributes of the id's QP", func(p part) (err error) {
		attr, mask, err = p.qpAttr(state)
		return err
	})
	return attr, mask, err
}

// QP is the queue pair that CreateQP made; nil if there is none.
func (i *ID) QP() *verbs.QP {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.qp
}

// DestroyQP destroys the id's queue pair (rdma_destroy_qp). What the id has attached it to, it is
// detached from first.
func (i *ID) DestroyQP() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.qp == nil {
		return fmt.Errorf("destroy the id's QP: %w: it has none", verbs.ErrInvalid)
	}
	i.detachAll()
	if err := i.qp.Close(); err != nil && !errors.Is(err, verbs.ErrObjectClosed) { // the program may have closed it
		return fmt.Errorf("destroy the id's QP: %w", err)
	}
	i.qp = nil
	return nil
}
