// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/provider"
)

// MulticastQPN is the destination queue pair number of datagrams to a group (IBA 10.5).
const MulticastQPN QPN = 0xFFFFFF

// AttachMcast makes the queue pair receive messages to a group (ibv_attach_mcast). It does not make the host a member
// of the group; JoinMulticast does. Without a membership, switches and the NIC's filter may drop the group's packets.
//
// It requires a UD queue pair that is not in RESET (else ErrState) and a multicast GID (else ErrInvalid). An MGID has
// one MLID; a second one is ErrInvalid. ErrLimit if there are too many attachments; the limit of a program is checked
// before the MLID. Attaching twice is no error, and one DetachMcast undoes both.
//
// While the queue pair is attached, the group's packets do not reach other listeners on the same interface, such as the
// host's own sockets or the stacks of macvlan children.
func (q *QP) AttachMcast(mgid GID, mlid MLID) error {
	if q == nil {
		return fmt.Errorf("attach to group: %w", errNil)
	}
	if err := provider.Exec(q.ctx.provider, provider.AttachMcast, provider.McastRequest{QP: q.handle, MGID: mgid, MLID: mlid}); err != nil {
		return fmt.Errorf("attach QP %v to group %v: %w", q.number, mgid, err)
	}
	return nil
}

// DetachMcast undoes AttachMcast (ibv_detach_mcast). After it has returned, nothing more is delivered through the
// attachment. ErrInvalid if the queue pair is not attached; ErrState in RESET, unless a CQ of the queue pair was
// overrun, so that it cannot leave RESET.
func (q *QP) DetachMcast(mgid GID, mlid MLID) error {
	if q == nil {
		return fmt.Errorf("detach from group: %w", errNil)
	}
	if err := provider.Exec(q.ctx.provider, provider.DetachMcast, provider.McastRequest{QP: q.handle, MGID: mgid, MLID: mlid}); err != nil {
		return fmt.Errorf("detach QP %v from group %v: %w", q.number, mgid, err)
	}
	return nil
}

// UDPQKey is the Q_Key of groups in rdma_cm's UDP port space (RDMA_UDP_QKEY).
const UDPQKey QKey = 0x01234567

// Membership is a program's membership of a group. It ends with Close.
type Membership struct {
	ctx   *Context
	grant provider.JoinMulticastGrant
}

// JoinMulticast joins a group by its address (rdma_join_multicast_ex), with librdmacm's flags. A full member makes the
// host a member, which IGMP or MLD reports once for all of the host's full members of the group on the interface. A
// send-only member is never reported, neither when it joins nor when it leaves. The join attaches no queue pair;
// AttachMcast does. A full member that only receives needs no address on the interface. A zone in the address, as in
// ff02::1%eth0, must be the interface's name.
func (c *Context) JoinMulticast(group netip.Addr, flags JoinFlags) (*Membership, error) {
	if c == nil {
		return nil, fmt.Errorf("join group: %w", errNil)
	}
	state := flags.State()
	if state == 0 {
		return nil, fmt.Errorf("join group %v: %w: join flags %d; full member is %d, send-only full member %d", group, ErrInvalid, uint32(flags), uint32(JoinFullMember), uint32(JoinSendOnlyFullMember))
	}
	grant, err := provider.Do(c.provider, provider.JoinMulticast, provider.JoinMulticastRequest{Group: group, State: state})
	if err != nil {
		return nil, fmt.Errorf("join group %v: %w", group, err)
	}
	return &Membership{c, grant}, nil
}

// MGID returns the group's multicast GID, for AttachMcast.
func (m *Membership) MGID() GID {
	if m == nil {
		return GID{}
	}
	return m.grant.MGID
}

// MLID returns the group's multicast LID, always 0: Ethernet has no MLIDs.
func (m *Membership) MLID() MLID { return 0 }

// AHAttr returns the attributes of an address handle for sending to the group; the messages go to MulticastQPN with the
// members' Q_Key. ErrNoGID if the source address chosen by the join is no longer on the interface, or if there was
// none.
func (m *Membership) AHAttr() (AHAttr, error) {
	if m == nil {
		return AHAttr{}, fmt.Errorf("AH of a group: %w", errNil)
	}
	entries, err := m.ctx.QueryGIDTable(1)
	if err != nil {
		return AHAttr{}, err
	}
	for _, entry := range slices.Backward(entries) { // the address's own entry, not the default's copy
		if entry.GID == m.grant.SGID {
			return AHAttr{Port: 1, GRH: GlobalRoute{DGID: m.grant.MGID, SGIDIndex: entry.Index, HopLimit: wire.DefaultHopLimit}}, nil
		}
	}
	if m.grant.SGID.IsZero() {
		return AHAttr{}, fmt.Errorf("send to group %v: %w: the interface had no address of the group's IP version at the time of the join; join again", m.grant.MGID, ErrNoGID)
	}
	return AHAttr{}, fmt.Errorf("send to group %v: %w: the source address %v is no longer on the interface; join again", m.grant.MGID, ErrNoGID, m.grant.SGID)
}

// Close leaves the group, by the MGID that the join computed. The host leaves with its last full member.
func (m *Membership) Close() error {
	if m == nil {
		return fmt.Errorf("leave group: %w", errNil)
	}
	if err := provider.Exec(m.ctx.provider, provider.LeaveMulticast, provider.LeaveMulticastRequest{Membership: m.grant.Membership}); err != nil {
		return fmt.Errorf("leave group %v: %w", m.grant.MGID, err)
	}
	return nil
}
