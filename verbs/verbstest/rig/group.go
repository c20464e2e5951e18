// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
)

var (
	GroupV4    = netip.MustParseAddr("239.1.2.3")
	OtherGroup = netip.MustParseAddr("239.129.2.3") // has the Ethernet address of GroupV4
	GroupV6    = netip.MustParseAddr("ff0e::1:2:3")
	Groups     = []netip.Addr{GroupV4, GroupV6}
)

// ToGroup returns a request that sends the contents of a slot to a group.
func (s *Station) ToGroup(group netip.Addr, slot, length int) verbs.SendWR {
	s.Helper()
	wr := s.Send(99, s.AH(group), s.QP, s.Piece(slot, length))
	wr.RemoteQPN = verbs.MulticastQPN
	return wr
}

// Join joins a group as a full member. Without a join the group's messages may not reach the card.
func (d *Device) Join(group netip.Addr) *verbs.Membership {
	d.Helper()
	m, err := d.Ctx.JoinMulticast(group, verbs.JoinFullMember)
	Check(d, err)
	return m
}

// Member creates another queue pair of the station, attached to a group.
func (s *Station) Member(group netip.Addr) *verbs.QP {
	s.Helper()
	qp := s.Active(DefaultCap())
	Check(s, qp.AttachMcast(GID(group), 0))
	return qp
}

// CheckGroup checks a message that was sent to a group.
func CheckGroup(t *testing.T, s *Station, wc verbs.WC, group netip.Addr, from *verbs.QP) {
	t.Helper()
	grh, payload := s.Received(wc)
	if payload != "to the group" || grh.DGID() != GID(group) || wc.SrcQP != from.Number() {
		t.Errorf("%q to %v from %v", payload, grh.DGID(), wc.SrcQP)
	}
}
