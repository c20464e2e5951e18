package verbs

import (
	"fmt"
	"net/netip"
	"slices"
)

// MulticastQPN is the queue pair number to send to, for a group.
const MulticastQPN QPN = 0xFFFFFF

// AttachMcast has the queue pair receive what is sent to a group
// (ibv_attach_mcast). It makes the host no member of the group: without a
// membership, switches and the card's filter may keep the group's packets away.
// A UD queue pair that is not in RESET, and a multicast GID, else an EINVAL; one
// MGID has one MLID, else ErrInvalid too; ErrLimit. Attaching twice is no error,
// and needs one DetachMcast.
//
// From now on the group's packets do not reach other listeners on the same
// interface: the host's own sockets, or stacks behind it.
func (q *QP) AttachMcast(mgid GID, mlid MLID) error {
	if err := q.ctx.provider.AttachMcast(McastRequest{q.handle, mgid, mlid}); err != nil {
		return fmt.Errorf("attach QP %v to group %v: %w", q.number, mgid, err)
	}
	return nil
}

// DetachMcast undoes AttachMcast (ibv_detach_mcast). When it returns nothing is being
// delivered through the attachment, and nothing will be. ErrInvalid when the queue
// pair is not attached, an EINVAL in RESET.
func (q *QP) DetachMcast(mgid GID, mlid MLID) error {
	if err := q.ctx.provider.DetachMcast(McastRequest{q.handle, mgid, mlid}); err != nil {
		return fmt.Errorf("detach QP %v from group %v: %w", q.number, mgid, err)
	}
	return nil
}

// UDPQKey is the Q_Key of groups in rdma_cm's UDP port space (RDMA_UDP_QKEY).
const UDPQKey QKey = 0x01234567

// Membership is a join to a group, until Close.
type Membership struct {
	ctx   *Context
	grant JoinMulticastGrant
}

// JoinMulticast joins a group by its address. A full member is reported by IGMP or
// MLD, once for all of a host's members of the group on the interface; a send-only
// one never is, neither now nor when it leaves. The join attaches no queue pair:
// AttachMcast does. A full member that only receives needs no address on the interface. A
// group's zone, as in ff02::1%eth0, is to be the interface's name.
func (c *Context) JoinMulticast(group netip.Addr, flags JoinFlags) (*Membership, error) {
	grant, err := c.provider.JoinMulticast(JoinMulticastRequest{group, flags})
	if err != nil {
		return nil, fmt.Errorf("join group %v: %w", group, err)
	}
	return &Membership{c, grant}, nil
}

// MGID is the group's multicast GID, for AttachMcast.
func (m *Membership) MGID() GID { return m.grant.MGID }

// MLID is the group's multicast LID; Ethernet has none: 0.
func (m *Membership) MLID() MLID { return 0 }

// AHAttr is where to send: to MulticastQPN there, with the members' Q_Key. It fails with
// ErrNoGID when the address that the join chose to send from has gone, or there was none.
func (m *Membership) AHAttr() (AHAttr, error) {
	entries, err := m.ctx.GIDs(1)
	if err != nil {
		return AHAttr{}, err
	}
	for _, entry := range slices.Backward(entries) { // the address's own line, not the default's copy
		if entry.GID == m.grant.SGID {
			return AHAttr{Port: 1, GRH: GlobalRoute{DGID: m.grant.MGID, SGIDIndex: entry.Index}}, nil
		}
	}
	if m.grant.SGID.IsZero() {
		return AHAttr{}, fmt.Errorf("send to group %v: %w: the interface had no address of the group's IP version when it was joined; join again", m.grant.MGID, ErrNoGID)
	}
	return AHAttr{}, fmt.Errorf("send to group %v: %w: %v, which the join chose to send from, has gone", m.grant.MGID, ErrNoGID, m.grant.SGID)
}

// Close leaves. What the join computed is what the leave uses; the last full
// member's leave is the host's.
func (m *Membership) Close() error {
	if m == nil {
		return fmt.Errorf("leave group: %w", errNil)
	}
	if err := m.ctx.provider.LeaveMulticast(LeaveMulticastRequest{m.grant.Membership}); err != nil {
		return fmt.Errorf("leave group %v: %w", m.grant.MGID, err)
	}
	return nil
}
