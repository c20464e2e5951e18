// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// fakeLink is a Link that consists of slices: tests append received frames and inspect sent ones.
type fakeLink struct {
	refused  int
	in       [][]byte
	out      [][]byte
	frame    [8192]byte
	full     bool // no frame can be reserved
	stuck    bool // no frame is ever sent
	left     int  // waiting frames, for TakeBack
	back     int
	flushes  int
	released int
	burst    [][]byte // of the last Receive
	numbers  bool
}

const fakeBurst = 64 // maximum number of frames of one Receive

func (l *fakeLink) Receive() int {
	n := min(len(l.in), fakeBurst)
	l.burst, l.in = l.in[:n], l.in[n:]
	return n
}
func (l *fakeLink) Next() (frame []byte) {
	frame, l.burst = l.burst[0], l.burst[1:]
	return frame
}
func (l *fakeLink) Behind(n int) []byte {
	if n >= len(l.burst) {
		return nil
	}
	return l.burst[n]
}
func (l *fakeLink) Numbers() bool { return l.numbers }
func (l *fakeLink) Room() int     { return 0 }
func (l *fakeLink) Release()      { l.released++ }
func (l *fakeLink) Reserve() []byte {
	if l.full {
		return nil
	}
	return l.frame[:]
}
func (l *fakeLink) Commit(length int) {
	l.out = append(l.out, append([]byte(nil), l.frame[:length]...))
}
func (l *fakeLink) Flush() bool {
	l.flushes++
	return !l.stuck
}
func (l *fakeLink) TakeBack() { l.back, l.left = l.left, 0 }
func (l *fakeLink) Refused() (n int) {
	n, l.refused = l.refused, 0
	return n
}
func (l *fakeLink) TakenBack() (n int) {
	n, l.back = l.back, 0
	return n
}
func (l *fakeLink) Descriptors() []int { return nil }
func (l *fakeLink) SetAsleep(bool)     {}
func (l *fakeLink) Close() error       { return nil }

var (
	ownGID   = gidOf("10.0.0.1")
	ownGID6  = gidOf("fd00::1")
	peerGID  = gidOf("10.0.0.2")
	otherGID = gidOf("10.0.0.3")

	hostGroup = gidOf("ff11::5") // of a scope that does not leave a host
)

func gidOf(address string) wire.GID { return wire.GIDFromAddr(netip.MustParseAddr(address)) }

const (
	testQP   wire.QPN  = 0x123
	peerQP   wire.QPN  = 0x456
	testQKey wire.QKey = 0x11111111
	testPD   region.PD = 1
	slotLen            = 2048
)

// rig is an engine with one queue pair, together with the program's side of its queues.
type rig struct {
	*testing.T
	engine   *Engine
	link     *fakeLink
	doorbell *ring.Doorbell
	session  *Session
	qp       *QP
	send     *ring.SendProducer
	recv     *ring.RecvProducer
	cq       *ring.CompletionConsumer
	wake     chan struct{}
	again    chan struct{} // see leads
	memory   []byte
	states   []ib.QPState // states that the engine has reported
	fatal    bool         // one of these changes was fatal
	overruns int
}

const rigDepth = 8

// newRig returns a rig with a queue pair in RTS, memory 1 (writable) and 2 (read only), and address handles 0 to the
// peer and 1 to this device.
func newRig(t *testing.T) *rig {
	t.Helper()
	link := &fakeLink{}
	r := newRigOn(t, link)
	r.link = link
	return r
}

// newRigOn is newRig on another link.
func newRigOn(t *testing.T, link link.Link) *rig {
	t.Helper()
	return newRigWith(t, link, false)
}

// spinTime is long enough for a woken worker to detect a polling program on a single processor.
const spinTime = 50 * time.Microsecond

func newRigWith(t *testing.T, link link.Link, alone bool) *rig {
	t.Helper()
	r := &rig{T: t, doorbell: ring.NewDoorbell(ring.Alloc(ring.DoorbellSize)), wake: make(chan struct{}, 1), again: make(chan struct{}), memory: make([]byte, 4*slotLen)}
	r.session = NewSession(r.doorbell)
	var err error
	if r.engine, err = newAlone(Config{Link: link, MTU: wire.MTU1024, Alone: alone, Spin: spinTime}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	r.makeQP(r.makeCQ(4 * rigDepth))
	r.engine.Do(func() {
		e := r.engine
		r.session.join(e)
		e.tables.setAddresses([]wire.GID{ownGID, ownGID6})
		e.tables.setBroadcasts([]wire.GID{gidOf("10.0.0.255")})
		e.tables.setMACs(wire.MAC{})
		e.setGroup(hostGroup, []*QP{r.qp})
		e.AddQP(r.qp)
		r.qp.SetState(ib.QPStateRTS)
		r.session.SetMR(&region.MR{LKey: testKey(1), PD: testPD, Memory: r.memory, Write: true})
		r.session.SetMR(&region.MR{LKey: testKey(2), PD: testPD, Memory: r.memory})
		r.session.SetMR(&region.MR{LKey: testKey(3), PD: testPD + 1, Memory: r.memory, Write: true})
		r.session.SetAH(0, r.ah(PathAttr{State: PathOpen}, peerGID))
		r.session.SetAH(1, r.ah(PathAttr{State: PathLocal}, ownGID))
		r.session.SetAH(2, &AH{PD: testPD + 1})
		r.session.SetAH(3, r.ah(PathAttr{State: PathUnreachable}, peerGID))
	})
	return r
}

// ah returns an address handle whose path has these attributes.
func (r *rig) ah(w PathAttr, dest wire.GID) *AH {
	a := &AH{PD: testPD, Path: new(Path), Template: wire.NewTemplate(wire.Path{Source: ownGID, Dest: dest})}
	a.Path.set(r.engine, w)
	return a
}

func (r *rig) makeCQ(entries uint32) *CQ {
	g := ring.CompletionGeometry(entries)
	memory := ring.Alloc(g.Size())
	producer, err := ring.NewCompletionProducer(memory, g)
	if err != nil {
		r.Fatal(err)
	}
	if r.cq, err = ring.NewCompletionConsumer(memory, g); err != nil {
		r.Fatal(err)
	}
	return &CQ{Session: r.session, Queue: producer, Wake: r.woken, Notify: r.woken, QPs: map[*QP]struct{}{}, NoteOverrun: func() { r.overruns++ }}
}

// woken records an event of an armed queue.
func (r *rig) woken() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *rig) makeQP(cq *CQ) {
	r.qp = &QP{Session: r.session, Number: testQP, PD: testPD, RecvPD: testPD, DoorbellIndex: 3, CompletionToken: 77, QKey: testQKey, PKey: wire.PKeyDefault, SendCQ: cq, RecvCQ: cq}
	r.qp.Serve(new(Datagrams))
	r.qp.NoteState = func(s ib.QPState, fatal bool) {
		r.states = append(r.states, s)
		r.fatal = r.fatal || fatal
	}
	sendShape, recvShape := ring.SendGeometry(rigDepth, 2, 64), ring.RecvGeometry(rigDepth, 2)
	r.qp.MaxSendSGE, r.qp.MaxInline = sendShape.SendRoom()
	sendMemory, recvMemory := ring.Alloc(sendShape.Size()), ring.Alloc(recvShape.Size())
	var errs [4]error
	r.qp.Send, errs[0] = ring.NewSendConsumer(sendMemory, sendShape)
	r.qp.Recv, errs[1] = ring.NewRecvConsumer(recvMemory, recvShape)
	r.send, errs[2] = ring.NewSendProducer(sendMemory, sendShape)
	r.recv, errs[3] = ring.NewRecvProducer(recvMemory, recvShape)
	for _, err := range errs {
		if err != nil {
			r.Fatal(err)
		}
	}
}

// postRecv posts a receive request with the given pieces of memory 1.
func (r *rig) postRecv(id uint64, sges ...ib.SGE) {
	r.recv.Put(id, sges)
	r.recv.Publish()
}

func piece(from, length int) ib.SGE {
	return ib.SGE{Addr: uint64(from), Length: uint32(length), LKey: testKey(1)}
}

// postSend posts a send request and rings the doorbell.
func (r *rig) postSend(s ring.Send, sges ...ib.SGE) {
	if s.Opcode == 0 {
		s.Opcode = ib.WRSend
	}
	s.SGECount, s.RemoteQPN, s.RemoteQKey = uint16(len(sges)), peerQP, testQKey
	data := r.send.Put(&s)
	for i, sge := range sges {
		ring.PutSGE(data[i*ring.SGELen:], sge)
	}
	r.send.Publish()
	r.doorbell.Ring(3)
}

// run runs rounds until there is no more work.
func (r *rig) run() {
	for range 2000 {
		r.engine.lease.Lock()
		moved := r.engine.runRound()
		r.engine.lease.Unlock()
		if !moved {
			return
		}
	}
	r.Fatal("the engine does not run out of work")
}

// completions returns the completions in the CQ.
func (r *rig) completions() (all []ring.CQE) {
	for r.cq.Available(1) > 0 {
		var c ring.CQE
		r.cq.Get(&c)
		all = append(all, c)
	}
	r.cq.Publish()
	return all
}

// testKey returns the key of the region with a number.
func testKey(number uint32) ib.LKey { return ib.LKey(number<<8 | 0x5A) }

// datagram returns a frame from the peer to the queue pair.
func datagram(payload []byte) []byte {
	return datagramFrom(wire.Path{Source: peerGID, Dest: ownGID}, defaultDatagram(), payload)
}

func defaultDatagram() wire.Datagram {
	return wire.Datagram{DestQP: testQP, SourceQP: peerQP, QKey: testQKey, PKey: wire.PKeyDefault}
}

func datagramFrom(path wire.Path, d wire.Datagram, payload []byte) []byte {
	template := wire.NewTemplate(path)
	frame := make([]byte, 8192)
	copy(frame[template.PayloadOffset(d.HasImm):], payload)
	return frame[:template.Seal(frame, &d, len(payload))]
}
