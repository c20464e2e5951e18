// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest/hostile"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var specialTests = []rig.Test{
	{Name: "types of queue pairs", Run: qpTypes},
	{Name: "numbers of queue pairs", Run: qpNumbers},
	{Name: "GSI is privileged", Run: gsiIsPrivileged},
	{Name: "GSI", Run: gsi},
}

// qpTypes checks for each type number that it is supported, known but unsupported, or invalid.
func qpTypes(t *testing.T, w *rig.World) {
	s := w.A
	for n := range 256 {
		kind := verbs.QPType(n)
		if kind >= verbs.QPTypeGSI && kind <= verbs.QPTypeUD || kind == verbs.QPTypeXRCSend {
			continue
		}
		want, says := error(unix.EINVAL), fmt.Sprint(n)
		switch kind {
		case verbs.QPTypeSMI:
			want, says = unix.EOPNOTSUPP, "QP 0 (SMI, type 0) is for InfiniBand's subnet management"
		case verbs.QPTypeXRCRecv:
			says = "XRC domain"
		case verbs.QPTypeRawPacket:
			want, says = unix.EOPNOTSUPP, kind.String()
		}
		_, err := s.PD.CreateQP(&verbs.QPInitAttr{Type: kind, SendCQ: s.CQ, RecvCQ: s.CQ, Port: 1})
		rig.Refused(t, err, want, says)
	}
}

// qpNumbers checks that queue pair numbers are not reused soon, so that messages to a closed queue pair reach no other
// one, and that none is reserved for special queue pairs or groups.
func qpNumbers(t *testing.T, w *rig.World) {
	seen := map[verbs.QPN]bool{w.A.QP.Number(): true}
	for range 1000 {
		qp := w.A.NewQP(verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1})
		n := qp.Number()
		if seen[n] || n < 2 || n >= verbs.MulticastQPN {
			t.Fatalf("number %v, seen %v", n, seen[n])
		}
		seen[n] = true
		rig.Check(t, qp.Close())
	}
}

// gsiIsPrivileged checks that QP 1 requires the privilege to use privileged Q_Keys.
func gsiIsPrivileged(t *testing.T, w *rig.World) {
	may := w.A.Privileged()
	qp, err := w.A.CreateGSI()
	if !may {
		rig.Refused(t, err, unix.EPERM, "CAP_NET_RAW")
		return
	}
	rig.Check(t, err)
	if qp.Number() != 1 {
		t.Errorf("number %v", qp.Number())
	}
	for _, port := range []uint8{0, 2} {
		_, err := w.A.PD.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeGSI, SendCQ: w.A.CQ, RecvCQ: w.A.CQ, Port: port})
		rig.Refused(t, err, unix.EINVAL, fmt.Sprint("port ", port))
	}
}

// gsi checks that a card has one QP 1, which has its Q_Key in RESET and sends datagrams.
func gsi(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	if !a.Privileged() || !b.Privileged() {
		_, err := a.CreateGSI()
		rig.Refused(t, err, unix.EPERM)
		return
	}
	nobody := a.Send(1, a.AH(b.End.IPv4), a.QP)
	nobody.RemoteQPN = 1
	a.Post(nobody)
	a.Expect(rig.OK(1))
	w.NothingElse() // b has no QP 1
	from, err := a.CreateGSI()
	rig.Check(t, err)
	for range 2 {
		_, err = a.CreateGSI()
		rig.Refused(t, err, unix.EBUSY, "QP 1")
	}
	gsiIsTaken(w)
	to, err := b.CreateGSI()
	rig.Check(t, err)
	gsiAttributes(t, from)
	rig.Check(t, from.Activate(rig.GSIQKey))
	rig.Check(t, to.Activate(rig.GSIQKey))
	w.GSITalks(from, to)
	rig.Refused(t, from.AttachMcast(rig.GID(rig.GroupV4), 0), unix.EINVAL, "GSI")
	rig.Check(t, from.Close())
	from, err = a.CreateGSI()
	rig.Check(t, err)
	rig.Check(t, from.Close())
}

// gsiIsTaken checks that no other session on a's card can create QP 1.
func gsiIsTaken(w *rig.World) {
	w.A.Helper()
	if w.Pair.Beside == nil {
		return
	}
	session := rig.Judge(w.A, w.Pair.Beside())
	h := hostile.NewHandles(w.A, session, 50)
	r := hostile.Request(h.PD, h.CQ, hostile.Doorbells+51)
	r.Type, r.Port = verbs.QPTypeGSI, 1
	_, err := provider.Do(session, provider.CreateQP, r)
	if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EPERM) {
		w.A.Errorf("another session: %v", err)
	}
	rig.Check(w.A, session.Close())
}

// gsiAttributes checks the attributes that QP 1 accepts for INIT, and that RESET keeps its initial ones.
func gsiAttributes(t *testing.T, qp *verbs.QP) {
	t.Helper()
	const mask = verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrQKey
	other := verbs.QPAttr{State: verbs.QPStateInit, QKey: rig.GSIQKey + 1}
	rig.Refused(t, qp.Modify(&other, mask), unix.EINVAL, "0x80010000")
	port := verbs.QPAttr{State: verbs.QPStateInit, QKey: rig.GSIQKey, Port: 1}
	rig.Refused(t, qp.Modify(&port, mask|verbs.QPAttrPort), unix.EINVAL, "cannot set port")
	rig.Check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateInit, QKey: rig.GSIQKey}, mask))
	rig.To(t, qp, verbs.QPStateReset)
	attr, init, err := qp.Query()
	rig.Check(t, err)
	if attr.QKey != rig.GSIQKey || attr.Port != 1 || init.Type != verbs.QPTypeGSI {
		t.Errorf("%+v, %+v", attr, init)
	}
}
