// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// scene is a card that an attacker shares with a neighbour, and a peer on another card. Attackers can use it one after
// the other.
type scene struct {
	testing.TB
	*wirePair           // the card's own program, which is the neighbour, and the peer
	sink      *verbs.QP // of the peer: receives the attacker's messages
	sunk      *verbs.CQ
	grouped   verbs.SendWR // sent by the peer to a group
	foreign   *verbs.SRQ   // of type XRC, in the neighbour's domain, which is not shared
	unused    *verbs.CQ    // its CQ
	canaries  []*verbs.MR  // memory of the neighbour and of the peer that is never written
	before    remains
}

// canary fills memory that no attacker is allowed to read or write; canarySlot is a slot of it.
var (
	canary     = []byte("not for attackers")
	canarySlot = bytes.Repeat(canary, slotLen)[:slotLen]
)

func newScene(t testing.TB, options ...Option) *scene {
	t.Helper()
	s := &scene{TB: t, wirePair: newWirePair(t, options...)}
	for _, one := range []*station{s.a, s.b} {
		for range 4 { // so that some keys equal those of the attacker's regions
			mr, err := one.pd.AllocMR(slotLen, verbs.AccessLocalWrite)
			check(t, err)
			s.guard(mr)
		}
	}
	s.openSink()
	s.openForeign()
	s.grouped = s.b.toGroup(groupV4, 9, 50)
	s.before = s.a.remains()
	return s
}

const sinkSlot = 32 // the first of the peer's slots for the sink

func (s *scene) openSink() {
	s.Helper()
	var err error
	s.sunk, err = s.b.ctx.CreateCQ(64)
	check(s, err)
	s.sink, err = s.b.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.sunk, RecvCQ: s.sunk, Cap: verbs.QPCap{MaxRecvWR: 16}})
	check(s, err)
	check(s, s.sink.Activate(testQKey))
	for slot := sinkSlot; slot < sinkSlot+16; slot++ {
		s.refill(slot)
	}
}

func (s *scene) openForeign() {
	s.Helper()
	domain, err := s.a.ctx.AllocXRCD()
	check(s, err)
	s.unused, err = s.a.ctx.CreateCQ(8)
	check(s, err)
	s.foreign, err = s.a.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 8, Type: verbs.SRQTypeXRC, XRCD: domain, CQ: s.unused})
	check(s, err)
	mr, err := s.a.pd.AllocMR(slotLen, verbs.AccessLocalWrite|remoteAccess)
	check(s, err)
	s.guard(mr)
	check(s, s.foreign.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{mr.SGE(0, slotLen)}}}))
}

func (s *scene) refill(slot int) {
	s.Helper()
	check(s, s.sink.PostRecv([]verbs.RecvWR{{ID: uint64(slot), SGList: []verbs.SGE{s.b.piece(slot, slotLen)}}}))
}

// drainSink receives the attacker's messages, which must contain only its own data.
func (s *scene) drainSink() (messages int) {
	s.Helper()
	for _, wc := range completionsOf(s, s.sunk) {
		slot := s.b.slot(int(wc.ID))
		if _, payload := wc.Payload(slot); bytes.Contains(payload, canary[:8]) {
			s.Errorf("the attacker sent foreign data: %q", payload)
		}
		s.refill(int(wc.ID))
		messages++
	}
	return messages
}

// guard fills a region with canaries.
func (s *scene) guard(mr *verbs.MR) {
	copy(mr.Bytes(), canarySlot)
	s.canaries = append(s.canaries, mr)
}

// unharmed checks that neighbour and peer reach each other, and that their memory is unchanged.
func (s *scene) unharmed() {
	s.Helper()
	for _, way := range []struct {
		from, to *station
		address  string
	}{{s.a, s.b, "10.0.0.2"}, {s.b, s.a, "10.0.0.1"}} {
		ah := way.from.ah(way.address)
		copy(way.from.slot(0), "alive")
		way.to.receive(1)
		way.from.post(way.from.send(7, ah, way.to, way.from.piece(0, 5)))
		expect(s, way.from.await(s, 1), ok(7))
		got := way.to.await(s, 1)
		expect(s, got, ok(1))
		if _, payload := got[0].Payload(way.to.slot(1)); string(payload) != "alive" {
			s.Errorf("got %q, want alive", payload)
		}
		check(s, ah.Close())
	}
	s.drainSink()
	if got := completionsOf(s, s.unused); len(got) != 0 {
		s.Errorf("the neighbour's SRQ received %+v", got)
	}
	for _, mr := range s.canaries {
		if !bytes.Equal(mr.Bytes()[:slotLen/2], canarySlot[:slotLen/2]) {
			s.Errorf("memory of the region with key %#x was written", mr.LKey())
		}
	}
}

// await polls for n completions, and runs both cards meanwhile, since they may have no workers.
func (s *station) await(w *scene, n int) (all []verbs.WC) {
	s.Helper()
	eventually(s, "completions", func() bool {
		for tries := 0; tries < 100 && len(all) < n; tries++ {
			all = append(all, s.completions()...)
			w.a.device.Progress()
			w.b.device.Progress()
		}
		return len(all) >= n
	})
	return all
}

// kernelMemory is memory from the kernel, like that of a daemon's client. An access after it was freed kills the
// process. The race detector ignores it, since program and card race there by design.
type kernelMemory struct{}

func (kernelMemory) Alloc(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func (kernelMemory) Free(memory []byte) { _ = unix.Munmap(memory) }

// attacker is a program that bypasses package verbs, and writes arbitrary data into its queues.
type attacker struct {
	*scene
	session   *Session
	kind      verbs.QPType // of its queue pair
	pd        provider.Handle
	mr, other provider.MRGrant // other is in another PD, and contains canaries
	ah        provider.Handle
	cq        provider.CreateCQGrant
	qp        provider.CreateQPGrant
	srq       provider.CreateSRQGrant // zero unless created with an SRQ
	srqn      verbs.SRQN              // its number, if of type XRC
	target    provider.OpenQPGrant    // peer of an XRC initiator
	send      *ring.SendProducer
	recv      *ring.RecvProducer
	polls     *ring.CompletionConsumer
}

// attackerIndex is the place of its queue pair in the doorbell, and the token of its completions.
const attackerIndex = 3

// newAttacker creates an attacker without a queue pair, in its own session.
func (s *scene) newAttacker() *attacker {
	s.Helper()
	session, err := s.a.device.NewSession(SessionConfig{Memory: kernelMemory{}})
	check(s, err)
	a := &attacker{scene: s, session: session, kind: verbs.QPTypeUD}
	pd, err := provider.Do(session, provider.AllocPD, provider.None{})
	check(s, err)
	foreign, err := provider.Do(session, provider.AllocPD, provider.None{})
	check(s, err)
	a.pd = pd.PD
	a.mr, err = session.mrs.allocate(provider.AllocMRRequest{PD: pd.PD, Length: 2 * slotLen, Access: verbs.AccessLocalWrite | remoteAccess})
	check(s, err)
	a.other, err = session.mrs.allocate(provider.AllocMRRequest{PD: foreign.PD, Length: slotLen, Access: verbs.AccessLocalWrite})
	check(s, err)
	copy(a.other.Memory, canarySlot)
	ah, err := session.ahs.create(guard(s), provider.CreateAHRequest{PD: pd.PD, Attr: *s.a.route("10.0.0.2")})
	check(s, err)
	a.ah = ah.AH
	a.cq, err = session.cqs.create(provider.CreateCQRequest{Entries: 64})
	check(s, err)
	return a
}

// withQP creates a queue pair in RTS: a UD one, unless another kind is requested.
func (a *attacker) withQP(kind ...verbs.QPType) *attacker {
	a.Helper()
	for _, k := range kind {
		a.kind = k
	}
	a.makeQP()
	return a
}

// withSRQ is withQP with an SRQ.
func (a *attacker) withSRQ(kind ...verbs.QPType) *attacker {
	a.Helper()
	var err error
	a.srq, err = a.session.srqs.create(provider.CreateSRQRequest{PD: a.pd, Attr: provider.SRQInitAttr{MaxWR: depth, MaxSGE: 4}})
	check(a, err)
	return a.withQP(kind...)
}

// withXRC creates an XRC initiator, connected to its own target, and an SRQ.
func (a *attacker) withXRC() *attacker {
	a.Helper()
	domain, err := a.session.xrcds.open(provider.OpenXRCDRequest{})
	check(a, err)
	a.target, err = a.session.targets.create(provider.CreateXRCTargetRequest{XRCD: domain.XRCD, EventID: 9})
	check(a, err)
	srq, err := a.session.srqs.createXRC(provider.CreateXRCSRQRequest{
		PD: a.pd, XRCD: domain.XRCD, CQ: a.cq.CQ, Attr: provider.SRQInitAttr{MaxWR: depth, MaxSGE: 4}, CompletionToken: attackerIndex, EventID: 10,
	})
	check(a, err)
	a.srq, a.srqn, a.kind = srq.CreateSRQGrant, srq.Number, verbs.QPTypeXRCSend
	a.makeQP()
	return a
}

func (a *attacker) makeQP() {
	a.Helper()
	var err error
	a.qp, err = a.session.qps.create(provider.CreateQPRequest{
		PD: a.pd, Type: a.kind, Cap: defaultCap(), SendCQ: a.cq.CQ, RecvCQ: a.cq.CQ, SRQ: a.srq.SRQ, DoorbellIndex: attackerIndex, CompletionToken: attackerIndex,
	})
	check(a, err)
	if a.srq.SRQ != 0 {
		a.qp.RecvMemory, a.qp.RecvGeometry = a.srq.Memory, a.srq.Geometry
	}
	a.openQueues()
	check(a, a.activate())
}

func (a *attacker) openQueues() {
	a.Helper()
	var err error
	a.send, err = ring.NewSendProducer(a.qp.SendMemory, a.qp.SendGeometry)
	check(a, err)
	a.recv, err = ring.NewRecvProducer(a.qp.RecvMemory, a.qp.RecvGeometry)
	check(a, err)
	a.polls, err = ring.NewCompletionConsumer(a.cq.Memory, a.cq.Geometry)
	check(a, err)
}

// modify changes the state as Activate does. A connected queue pair is connected to itself.
func (a *attacker) modify(state verbs.QPState) error {
	if a.kind != verbs.QPTypeUD {
		return a.modifyConnected(state)
	}
	r := provider.ModifyQPRequest{QP: a.qp.QP, Attr: verbs.QPAttr{State: state, Port: 1, QKey: testQKey}, Mask: verbs.QPAttrState, CompletionToken: attackerIndex}
	switch state {
	case verbs.QPStateInit:
		r.Mask |= verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrQKey
	case verbs.QPStateRTS:
		r.Mask |= verbs.QPAttrSQPSN
	}
	_, err := a.session.qps.modify(r)
	return err
}

func (a *attacker) modifyConnected(state verbs.QPState) error {
	r := provider.ModifyQPRequest{QP: a.qp.QP, Mask: verbs.QPAttrState, CompletionToken: attackerIndex, Attr: verbs.QPAttr{
		State: state, Port: 1, AccessFlags: verbs.AccessRemoteRead | remoteChange, AHAttr: *a.a.route("10.0.0.1"), PathMTU: verbs.MTU1024,
		DestQPN: a.qp.Number, MaxDestRDAtomic: 2, MinRNRTimer: 1, Timeout: 1, RetryCnt: 1, RNRRetry: 1, MaxRDAtomic: 2,
	}}
	if a.kind == verbs.QPTypeXRCSend {
		return a.modifyXRC(&r)
	}
	reliable := verbs.QPAttrMask(0)
	switch state {
	case verbs.QPStateInit:
		r.Mask |= verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrAccessFlags
	case verbs.QPStateRTR:
		r.Mask |= verbs.QPAttrAV | verbs.QPAttrPathMTU | verbs.QPAttrDestQPN | verbs.QPAttrRQPSN
		reliable = verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer
	case verbs.QPStateRTS:
		r.Mask |= verbs.QPAttrSQPSN
		reliable = verbs.QPAttrTimeout | verbs.QPAttrRetryCnt | verbs.QPAttrRNRRetry | verbs.QPAttrMaxQPRDAtomic
	}
	if a.kind == verbs.QPTypeRC {
		r.Mask |= reliable
	}
	_, err := a.session.qps.modify(r)
	return err
}

// modifyXRC changes the initiator and its target.
func (a *attacker) modifyXRC(r *provider.ModifyQPRequest) error {
	target := *r
	r.Attr.DestQPN, target.QP = a.target.Number, a.target.QP
	switch r.Attr.State {
	case verbs.QPStateInit:
		r.Mask |= verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrAccessFlags
		target.Mask = r.Mask
	case verbs.QPStateRTR:
		r.Mask |= verbs.QPAttrAV | verbs.QPAttrPathMTU | verbs.QPAttrDestQPN | verbs.QPAttrRQPSN
		target.Mask = r.Mask | verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer
	case verbs.QPStateRTS:
		r.Mask |= verbs.QPAttrSQPSN | verbs.QPAttrTimeout
		target.Mask = r.Mask
		r.Mask |= verbs.QPAttrRetryCnt | verbs.QPAttrRNRRetry | verbs.QPAttrMaxQPRDAtomic
	}
	_, err := a.session.qps.modify(*r)
	if _, of := a.session.qps.modify(target); err == nil {
		err = of
	}
	return err
}

func (a *attacker) activate() error {
	for _, state := range []verbs.QPState{verbs.QPStateInit, verbs.QPStateRTR, verbs.QPStateRTS} {
		if err := a.modify(state); err != nil {
			return err
		}
	}
	return nil
}

// ring rings the doorbell and lets the cards run.
func (a *attacker) ring() {
	if a.session.Doorbell().Ring(attackerIndex) {
		a.session.Wake()
	}
	a.run()
}

// message makes the peer send a message to the attacker's queue pair.
func (a *attacker) message(length int) {
	a.Helper()
	ah := a.b.ah("10.0.0.1")
	wr := a.b.send(5, ah, a.b, a.b.piece(9, length))
	wr.RemoteQPN = a.qp.Number
	a.b.post(wr)
	expect(a, a.b.await(a.scene, 1), ok(5))
	check(a, ah.Close())
	a.run()
}

// results returns the attacker's completions.
func (a *attacker) results() (all []outcome) {
	var c ring.CQE
	for a.polls.Available(1) > 0 {
		a.polls.Get(&c)
		all = append(all, outcome{c.ID, c.Status})
	}
	a.polls.Publish()
	return all
}

// leave closes the attacker's session, and checks that it has done no harm.
func (a *attacker) leave() {
	a.Helper()
	if !bytes.Equal(a.other.Memory, canarySlot) {
		a.Error("memory of another PD was written")
	}
	check(a, a.session.Close())
	a.unharmed()
	if got := a.a.remains(); got != a.before {
		a.Errorf("got %+v after the attack, want %+v", got, a.before)
	}
}
