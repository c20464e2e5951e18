package cm

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

type (
	// JoinFlags is what a member does, in librdmacm's numbers: JoinFullMember or JoinSendOnlyFullMember.
	JoinFlags = verbs.JoinFlags

	// JoinState is what a member does, in the kernel's: bits JoinStateFullMember to JoinStateSendOnlyFullMember.
	JoinState = ib.JoinState
)

// The flags (RDMA_MC_JOIN_FLAG_*): 0 and 1.
const (
	// JoinFullMember sends and receives: IGMP or MLD reports the host's membership.
	JoinFullMember = verbs.JoinFullMember
	// JoinSendOnlyFullMember only sends: nothing is ever reported, and no queue pair is attached.
	JoinSendOnlyFullMember = verbs.JoinSendOnlyFullMember
)

// The join states (the kernel's IB_SA_MCMEMBER_REC_JOIN_STATE): 1, 2, 4 and 8. On Ethernet nobody keeps a list of
// members who do not count, so that a non-member is a member like any other.
const (
	JoinStateFullMember         = ib.JoinStateFullMember
	JoinStateNonMember          = ib.JoinStateNonMember
	JoinStateSendOnlyNonMember  = ib.JoinStateSendOnlyNonMember
	JoinStateSendOnlyFullMember = ib.JoinStateSendOnlyFullMember
)

// JoinAttrMask says which fields of JoinAttr count (rdma_cm_join_mc_attr_mask).
type JoinAttrMask uint32

// The fields. Both are needed.
const (
	JoinAttrAddress JoinAttrMask = 1 << 0
	JoinAttrFlags   JoinAttrMask = 1 << 1
)

// JoinAttr describes a join (rdma_cm_join_mc_attr_ex).
type JoinAttr struct {
	Mask    JoinAttrMask
	Flags   JoinFlags
	Address netip.Addr // of the group
}

// join is one that the id has asked for.
type join struct {
	context  any
	full     bool // it receives
	attached bool // the id's queue pair, to mgid
	mgid     verbs.GID
}

// joins are those of an id, by what the card calls their contexts.
type joins map[uint64]*join

// JoinMulticast joins a group with a join state (the kernel's rdma_join_multicast; librdmacm's, which has none, joins
// with JoinStateFullMember). What JoinMulticastEx says holds here too. Who only sends, by whichever state, is never
// reported by IGMP or MLD. verbs.ErrInvalid for no state, and for bits that are none.
func (i *ID) JoinMulticast(group netip.Addr, state JoinState, context any) error {
	if i == nil {
		return fmt.Errorf("join group: %w", errNil)
	}
	return i.do(fmt.Sprintf("join group %v", group), func(p part) error { return i.join(p, group, state, context) })
}

// JoinMulticastEx joins a group by its address, IPv4 or IPv6 (rdma_join_multicast_ex). EventMulticastJoin
// follows, with the context and with what to send to the group by; or EventMulticastError, and then there
// is nothing to leave, unless it was attaching the id's queue pair that failed. The id has to be bound to a
// device, and not further than resolved (verbs.ErrInvalid). Joining a group again makes a second membership.
//
// verbs.ErrInvalid for a mask without address or flags, for other flags than the two, and for an address that is
// no group's; verbs.ErrUnsupported for a mask with more.
func (i *ID) JoinMulticastEx(attr JoinAttr, context any) error {
	if i == nil {
		return fmt.Errorf("join group: %w", errNil)
	}
	state, err := attr.check()
	if err != nil {
		return fmt.Errorf("join group %v: %w", attr.Address, err)
	}
	return i.JoinMulticast(attr.Address, state, context)
}

// join asks the card for a membership. The caller holds mu.
func (i *ID) join(p part, group netip.Addr, state JoinState, context any) error {
	i.joined++
	token := i.joined
	i.joins[token] = &join{context: context, full: state.Receives()}
	err := provider.Exec(p.provider, provider.JoinID, provider.JoinIDRequest{ID: p.handle, Group: group, State: state, Context: token})
	if err != nil {
		delete(i.joins, token)
	}
	return err
}

// check gives the join state that is asked for.
func (a *JoinAttr) check() (JoinState, error) {
	const needed = JoinAttrAddress | JoinAttrFlags
	switch {
	case a.Mask&^needed != 0:
		return 0, fmt.Errorf("%w: fields 0x%x of the attributes are unknown", verbs.ErrUnsupported, uint32(a.Mask&^needed))
	case a.Mask != needed:
		return 0, fmt.Errorf("%w: the mask has to name both address and flags", verbs.ErrInvalid)
	}
	state := a.Flags.State()
	if state == 0 {
		return 0, fmt.Errorf("%w: join flags %d; full member is %d, send-only full member %d", verbs.ErrInvalid, uint32(a.Flags), uint32(JoinFullMember), uint32(JoinSendOnlyFullMember))
	}
	return state, nil
}

// LeaveMulticast leaves a group (rdma_leave_multicast): the last membership that the id asked for with
// this address, whether its event has come or not. The id's queue pair is detached, unless another
// membership of the id keeps it attached. verbs.ErrAddrNotAvail for a group that was not joined.
func (i *ID) LeaveMulticast(group netip.Addr) error {
	if i == nil {
		return fmt.Errorf("leave group: %w", errNil)
	}
	return i.do(fmt.Sprintf("leave group %v", group), func(p part) error {
		grant, err := provider.Do(p.provider, provider.LeaveID, provider.LeaveIDRequest{ID: p.handle, Group: group})
		if err != nil {
			return err
		}
		j := i.joins[grant.Context]
		delete(i.joins, grant.Context)
		if j != nil && j.attached {
			i.joins.detach(i.qp, j)
		}
		return nil
	})
}

// retrieve does what is to be done when the program gets an event; false if there is nobody to get it.
func (i *ID) retrieve(e *Event, token uint64) bool {
	switch e.Type {
	case EventConnectResponse:
		i.respond(e)
		return true
	case EventRejected:
		i.rejected()
		return true
	case EventMulticastJoin, EventMulticastError:
		return i.joinEnded(e, token)
	}
	return true
}

// joinEnded attaches the id's queue pair to the group that it has joined; false if it was left just now.
func (i *ID) joinEnded(e *Event, token uint64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	j := i.joins[token]
	if j == nil {
		return false // it was left just now
	}
	e.Context = j.context
	if e.Type == EventMulticastError {
		delete(i.joins, token)
		return true
	}
	if !j.full || i.qp == nil {
		return true
	}
	j.mgid = e.AH.GRH.DGID
	if err := i.qp.AttachMcast(j.mgid, 0); err != nil {
		e.fail(EventMulticastError, err)
		return true
	}
	j.attached = true
	return true
}

// detach detaches the queue pair from a join's group, unless another join needs it too.
func (all joins) detach(from *verbs.QP, j *join) {
	j.attached = false
	for _, other := range all {
		if other.attached && other.mgid == j.mgid {
			return
		}
	}
	_ = from.DetachMcast(j.mgid, 0) // else the program has, or its state is RESET
}

func (all joins) detachAll(from *verbs.QP) {
	for _, j := range all {
		if j.attached {
			all.detach(from, j)
		}
	}
}
