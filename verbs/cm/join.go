// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

type (
	// JoinFlags is the type of a membership, in librdmacm's numbers: JoinFullMember or JoinSendOnlyFullMember.
	JoinFlags = verbs.JoinFlags

	// JoinState is the type of a membership in the kernel: bits JoinStateFullMember to JoinStateSendOnlyFullMember.
	JoinState = ib.JoinState
)

// The flags (RDMA_MC_JOIN_FLAG_*): 0 and 1.
const (
	// JoinFullMember sends and receives: IGMP or MLD reports the host's membership.
	JoinFullMember = verbs.JoinFullMember
	// JoinSendOnlyFullMember only sends: the membership is never reported, and no queue pair is attached.
	JoinSendOnlyFullMember = verbs.JoinSendOnlyFullMember
)

// The join states (the kernel's IB_SA_MCMEMBER_REC_JOIN_STATE): 1, 2, 4 and 8. Ethernet has no list of full members, so
// non-members are treated like members.
const (
	JoinStateFullMember         = ib.JoinStateFullMember
	JoinStateNonMember          = ib.JoinStateNonMember
	JoinStateSendOnlyNonMember  = ib.JoinStateSendOnlyNonMember
	JoinStateSendOnlyFullMember = ib.JoinStateSendOnlyFullMember
)

// JoinAttrMask selects fields of JoinAttr (rdma_cm_join_mc_attr_mask).
type JoinAttrMask uint32

// The fields. Both are required.
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

// join is a join requested by the id.
type join struct {
	context  any
	full     bool // receives messages
	attached bool // the id's queue pair is attached to mgid
	mgid     verbs.GID
}

// joins are the joins of an id, by their contexts in commands.
type joins map[uint64]*join

// JoinMulticast joins a group with a join state (the kernel's rdma_join_multicast; librdmacm's always uses
// JoinStateFullMember). Otherwise it works like JoinMulticastEx. Send-only memberships of either state are never
// reported by IGMP or MLD. verbs.ErrInvalid for state 0 and for unknown bits.
func (i *ID) JoinMulticast(group netip.Addr, state JoinState, context any) error {
	if i == nil {
		return fmt.Errorf("join group: %w", errNil)
	}
	return i.do(fmt.Sprintf("join group %v", group), func(p part) error { return i.join(p, group, state, context) })
}

// JoinMulticastEx joins a group by its address, IPv4 or IPv6 (rdma_join_multicast_ex). EventMulticastJoin follows, with
// the context and the destination for messages to the group; or EventMulticastError, and then there is no membership,
// unless attaching the id's queue pair failed. The id must be bound to a device, and may be resolved but not connected
// (verbs.ErrInvalid). Joining a group again creates a second membership.
//
// verbs.ErrInvalid for a mask without address or flags, for other flags than the two, and for an address that is not
// multicast; verbs.ErrUnsupported for a mask with other bits.
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

// join requests a membership from the card. The caller holds mu.
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

// check returns the requested join state.
func (a *JoinAttr) check() (JoinState, error) {
	const needed = JoinAttrAddress | JoinAttrFlags
	switch {
	case a.Mask&^needed != 0:
		return 0, fmt.Errorf("%w: unknown mask bits 0x%x", verbs.ErrUnsupported, uint32(a.Mask&^needed))
	case a.Mask != needed:
		return 0, fmt.Errorf("%w: the mask must contain both address and flags", verbs.ErrInvalid)
	}
	state := a.Flags.State()
	if state == 0 {
		return 0, fmt.Errorf("%w: join flags %d; full member is %d, send-only full member %d", verbs.ErrInvalid, uint32(a.Flags), uint32(JoinFullMember), uint32(JoinSendOnlyFullMember))
	}
	return state, nil
}

// LeaveMulticast leaves a group (rdma_leave_multicast): the last membership that the id requested for this address,
// whether or not its event has arrived. The id's queue pair is detached, unless another membership of the id needs it.
// verbs.ErrAddrNotAvail for a group that was not joined.
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

// retrieve updates the id when the program dequeues an event; false if the event is to be dropped.
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

// joinEnded attaches the id's queue pair to the group that it has joined; false if it was left meanwhile.
func (i *ID) joinEnded(e *Event, token uint64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	j := i.joins[token]
	if j == nil {
		return false // it was left meanwhile
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
	_ = from.DetachMcast(j.mgid, 0) // fails if the program has detached it, or its state is RESET
}

func (all joins) detachAll(from *verbs.QP) {
	for _, j := range all {
		if j.attached {
			all.detach(from, j)
		}
	}
}
