// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"github.com/roced/roced/verbs"
)

// Addressed allocates a region that begins at an address.
func (s *Station) Addressed(iova uint64) *verbs.MR {
	s.Helper()
	mr, err := s.PD.AllocMRIOVA(SlotLen, iova, verbs.AccessLocalWrite)
	Check(s, err)
	return mr
}

// Reaches reports whether the card can access the program's own memory.
func (s *Station) Reaches() bool {
	s.Helper()
	mr, err := s.PD.RegMR(make([]byte, 1), 0)
	if verbs.KindOf(err) == verbs.ErrUnsupported {
		return false
	}
	Check(s, err)
	Check(s, mr.Close())
	return true
}

// Sends sends an SGE from the station to itself, and returns the received payload.
func (s *Station) Sends(sge verbs.SGE) string {
	s.Helper()
	ah := s.AH(s.End.IPv4)
	s.Receive(0)
	s.Post(s.Send(1, ah, s.QP, sge))
	got := s.Expect(OK(0), OK(1))
	_, payload := s.Received(got[0])
	Check(s, ah.Close())
	return string(payload)
}

// CannotSend checks that sending an SGE fails with a local protection error.
func (s *Station) CannotSend(sge verbs.SGE) {
	s.Helper()
	ah := s.AH(s.End.IPv4)
	s.Post(s.Send(1, ah, s.QP, sge))
	s.Expect(Outcome{1, verbs.WCLocProtErr})
	To(s, s.QP, verbs.QPStateRTS)
	Check(s, ah.Close())
}
