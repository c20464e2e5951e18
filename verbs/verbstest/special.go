package verbstest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var specialTests = []test{
	{name: "types of queue pairs", run: qpTypes},
	{name: "numbers of queue pairs", run: qpNumbers},
	{name: "GSI is privileged", run: gsiIsPrivileged},
	{name: "GSI", run: gsi},
}

// gsiQKey is the Q_Key of QP 1 (IBA 13.5.3.1).
const gsiQKey verbs.QKey = 0x80010000

// Each number of a type is one that works, one that is known and not supported, or none.
func qpTypes(t *testing.T, w *world) {
	s := w.a
	for n := range 256 {
		kind := verbs.QPType(n)
		if kind >= verbs.QPTypeGSI && kind <= verbs.QPTypeUD {
			continue
		}
		want, says := error(unix.EINVAL), fmt.Sprint(n)
		switch kind {
		case verbs.QPTypeSMI:
			want, says = unix.EOPNOTSUPP, "QP 0 (SMI, type 0) is for InfiniBand's subnet management"
		case verbs.QPTypeRawPacket, verbs.QPTypeXRCSend, verbs.QPTypeXRCRecv:
			want, says = unix.EOPNOTSUPP, kind.String()
		}
		_, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: kind, SendCQ: s.cq, RecvCQ: s.cq, Port: 1})
		refused(t, err, want, says)
	}
}

// Numbers are used again late: a message to a queue pair that has been closed reaches no other. None
// is that of a special queue pair, or of groups.
func qpNumbers(t *testing.T, w *world) {
	seen := map[verbs.QPN]bool{w.a.qp.Number(): true}
	for range 1000 {
		qp := w.a.newQP(verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1})
		n := qp.Number()
		if seen[n] || n < 2 || n >= verbs.MulticastQPN {
			t.Fatalf("number %v, seen %v", n, seen[n])
		}
		seen[n] = true
		check(t, qp.Close())
	}
}

// privileged reports whether the program may have a privileged Q_Key.
func (s *station) privileged() bool {
	s.Helper()
	qp := s.newQP(defaultCap())
	err := qp.Activate(gsiQKey)
	if err != nil {
		refused(s, err, verbs.ErrPermission)
	}
	check(s, qp.Close())
	return err == nil
}

func (s *station) createGSI() (*verbs.QP, error) {
	return s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeGSI, SendCQ: s.cq, RecvCQ: s.cq, Cap: defaultCap(), Port: 1})
}

// Who may not have a privileged Q_Key may not have QP 1, and who may, may.
func gsiIsPrivileged(t *testing.T, w *world) {
	may := w.a.privileged()
	qp, err := w.a.createGSI()
	if !may {
		refused(t, err, unix.EPERM, "CAP_NET_RAW")
		return
	}
	check(t, err)
	if qp.Number() != 1 {
		t.Errorf("number %v", qp.Number())
	}
	for _, port := range []uint8{0, 2} {
		_, err := w.a.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeGSI, SendCQ: w.a.cq, RecvCQ: w.a.cq, Port: port})
		refused(t, err, unix.EINVAL, fmt.Sprint("port ", port))
	}
}

// QP 1 is one for a card, has its Q_Key from the beginning, and is a queue pair for datagrams.
func gsi(t *testing.T, w *world) {
	a, b := w.a, w.b
	if !a.privileged() || !b.privileged() {
		_, err := a.createGSI()
		refused(t, err, unix.EPERM)
		return
	}
	nobody := a.send(1, a.ah(b.end.IPv4), a.qp)
	nobody.RemoteQPN = 1
	a.post(nobody)
	a.expect(ok(1))
	w.nothingElse() // b has no QP 1
	from, err := a.createGSI()
	check(t, err)
	for range 2 {
		_, err = a.createGSI()
		refused(t, err, unix.EBUSY, "QP 1")
	}
	w.gsiIsTaken()
	to, err := b.createGSI()
	check(t, err)
	gsiAttributes(t, from)
	check(t, from.Activate(gsiQKey))
	check(t, to.Activate(gsiQKey))
	w.gsiTalks(from, to)
	refused(t, from.AttachMcast(gid(groupV4), 0), unix.EINVAL, "GSI")
	check(t, from.Close())
	from, err = a.createGSI()
	check(t, err)
	check(t, from.Close())
}

// gsiIsTaken checks that no other session on a's card can have QP 1.
func (w *world) gsiIsTaken() {
	w.a.Helper()
	if w.pair.Beside == nil {
		return
	}
	session := judge(w.a, w.pair.Beside())
	h := w.a.newHandles(session, 50)
	r := request(h.pd, h.cq, doorbells+51)
	r.Type, r.Port = verbs.QPTypeGSI, 1
	_, err := session.CreateQP(r)
	if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EPERM) {
		w.a.Errorf("another session: %v", err)
	}
	check(w.a, session.Close())
}

// gsiAttributes checks what QP 1 takes on its way to INIT, and that RESET keeps what it has from the
// beginning.
func gsiAttributes(t *testing.T, qp *verbs.QP) {
	t.Helper()
	const mask = verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrQKey
	other := verbs.QPAttr{State: verbs.QPStateInit, QKey: gsiQKey + 1}
	refused(t, qp.Modify(&other, mask), unix.EINVAL, "0x80010000")
	port := verbs.QPAttr{State: verbs.QPStateInit, QKey: gsiQKey, Port: 1}
	refused(t, qp.Modify(&port, mask|verbs.QPAttrPort), unix.EINVAL, "cannot set port")
	check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateInit, QKey: gsiQKey}, mask))
	to(t, qp, verbs.QPStateReset)
	attr, init, err := qp.Query()
	check(t, err)
	if attr.QKey != gsiQKey || attr.Port != 1 || init.Type != verbs.QPTypeGSI {
		t.Errorf("%+v, %+v", attr, init)
	}
}

// gsiTalks sends from one QP 1 to the other; who has another Q_Key does not get through.
func (w *world) gsiTalks(from, to *verbs.QP) {
	a, b := w.a, w.b
	a.Helper()
	b.receiveOn(to, 3)
	ah := a.ah(b.end.IPv4)
	foreign := a.send(1, ah, to)
	a.post(foreign)
	a.expect(ok(1))
	w.nothingElse()
	wr := a.send(2, ah, to)
	wr.RemoteQKey = gsiQKey
	check(a, from.PostSend([]verbs.SendWR{wr}))
	a.expect(ok(2))
	if got := b.expect(ok(3)); got[0].SrcQP != 1 || got[0].QPN != 1 {
		b.Errorf("%+v", got[0])
	}
}
