// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
)

// badWireVariable sets the number of requests at each end of TestConnectionOverABadWire.
const badWireVariable = "ROCED_BADWIRE"

// badTimeout is the local ACK timeout of both ends, 268 ms. Eight timeouts in a row end a connection, and a busy
// processor may run both ends and the wire.
const badTimeout = 16

// The layout of an end's region, in slots: memory for sends and READs, for the peer's writes, for receives, for the
// peer's READs, and the number that the peer's atomics add to.
const (
	badSlots    = 4 // outstanding requests
	badSlot     = 1 << 20
	badSource   = 0
	badSink     = badSource + badSlots
	badRecv     = badSink + badSlots
	badConstant = badRecv + badSlots
	badNumber   = badConstant + 1
)

// badEnd is one end of a connection, with its outstanding requests.
type badEnd struct {
	*station
	r            *rand.Rand
	peer         *badEnd
	sends, recvs *verbs.CQ
	posted, done int
	requests     [badSlots]badRequest
	expected     []badRequest // by the peer's receives
	taken        int
	sum          uint64 // the peer's number after all posted requests
}

type badRequest struct {
	verbs.SendWR
	length int
	from   int    // of a READ
	found  uint64 // by an atomic
}

func newBadEnd(t *testing.T, card *Card, workers int, seed uint64) *badEnd {
	e := &badEnd{r: rand.New(rand.NewPCG(seed, 0))}
	if workers == 1 {
		e.station = newStation(t, card)
	} else {
		crew := sessionsOf(t, card)
		if len(crew) != workers {
			t.Fatalf("%d workers, want %d", len(crew), workers)
		}
		other := slices.IndexFunc(crew, func(s *Session) bool { return s.entry.Engine() != card.session.entry.Engine() })
		e.station = newStationIn(t, card, crew[other])
	}
	var err error
	e.sends, err = e.ctx.CreateCQ(badSlots)
	check(t, err)
	e.recvs, err = e.ctx.CreateCQ(2 * badSlots)
	check(t, err)
	e.mr, err = e.pd.AllocMR((badNumber+1)*badSlot, verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic)
	check(t, err)
	copy(e.slot(badConstant), pattern(badSlot, int(seed)))
	e.qp, err = e.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: e.sends, RecvCQ: e.recvs, Cap: defaultCap()})
	check(t, err)
	return e
}

func (e *badEnd) connect(peer *badEnd, to string) {
	e.peer = peer
	check(e, e.qp.Connect(&verbs.QPAttr{
		AHAttr: *e.route(to), DestQPN: peer.qp.Number(), AccessFlags: verbs.AccessRemoteRead | verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic,
		MaxRDAtomic: badSlots, MaxDestRDAtomic: badSlots, MinRNRTimer: 1, Timeout: badTimeout, RetryCnt: 7, RNRRetry: 7,
	}))
	for slot := range badSlots {
		e.postRecv(slot)
	}
}

func (e *badEnd) slot(n int) []byte { return e.mr.Bytes()[n*badSlot:][:badSlot] }

func (e *badEnd) postRecv(slot int) {
	check(e, e.qp.PostRecv([]verbs.RecvWR{{ID: uint64(slot), SGList: []verbs.SGE{e.mr.SGE((badRecv+slot)*badSlot, badSlot)}}}))
}

// length returns a random length from 0 to 1 MiB, each magnitude with the same probability.
func (e *badEnd) length() int { return e.r.IntN(1<<e.r.IntN(21)) + e.r.IntN(2) }

func (e *badEnd) post() {
	slot := e.posted % badSlots
	kinds := []verbs.Opcode{verbs.WRSend, verbs.WRSendWithImm, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm, verbs.WRRDMARead, verbs.WRAtomicFetchAndAdd}
	q := badRequest{length: e.length(), found: e.sum}
	wr := &q.SendWR
	*wr = verbs.SendWR{ID: uint64(e.posted), Opcode: kinds[e.r.IntN(len(kinds))], Flags: verbs.SendSignaled, ImmData: uint32(e.posted), RKey: e.peer.mr.RKey()}
	at := badSink + slot
	switch wr.Opcode {
	case verbs.WRRDMARead:
		at, q.from = badConstant, e.r.IntN(badSlot-q.length+1)
	case verbs.WRAtomicFetchAndAdd:
		at, q.length, wr.CompareAdd = badNumber, 8, e.r.Uint64()
		e.sum += wr.CompareAdd
	default:
		copy(e.slot(badSource + slot)[:q.length], pattern(q.length, e.posted))
	}
	wr.RemoteAddr = e.peer.mr.IOVA() + uint64(at*badSlot+q.from)
	wr.SGList = []verbs.SGE{e.mr.SGE((badSource+slot)*badSlot, q.length)}
	check(e, e.qp.PostSend([]verbs.SendWR{*wr}))
	if wr.Opcode == verbs.WRSend || wr.Opcode == verbs.WRSendWithImm || wr.Opcode == verbs.WRRDMAWriteWithImm {
		e.expected = append(e.expected, q)
	}
	e.requests[slot] = q
	e.posted++
}

// received checks a message that the peer has received.
func (e *badEnd) received(wc *verbs.WC) {
	if e.taken >= len(e.expected) {
		e.Fatalf("completion of a receive without a request: %+v", wc)
	}
	q, slot := e.expected[e.taken], e.taken%badSlots
	e.taken++
	if wc.Err() != nil || wc.ID != uint64(slot) || int(wc.ByteLen) != q.length || q.Opcode != verbs.WRSend && wc.ImmData != q.ImmData {
		e.Fatalf("request %d: received as %+v", q.ID, wc)
	}
	if q.Opcode != verbs.WRRDMAWriteWithImm && !bytes.Equal(e.peer.slot(badRecv + slot)[:q.length], pattern(q.length, int(q.ID))) {
		e.Fatalf("request %d: received %d bytes that differ from those sent", q.ID, q.length)
	}
	e.peer.postRecv(slot)
}

// completed checks the effect of a request.
func (e *badEnd) completed(wc *verbs.WC) {
	q := &e.requests[e.done%badSlots]
	if wc.Err() != nil || wc.ID != q.ID {
		e.Fatalf("request %d: completed as %+v: %v", q.ID, wc, wc.Err())
	}
	local, want := e.slot(badSource + e.done%badSlots)[:q.length], []byte(nil)
	switch q.Opcode {
	case verbs.WRRDMARead:
		want = e.peer.slot(badConstant)[q.from:][:q.length]
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm:
		want = e.peer.slot(badSink + e.done%badSlots)[:q.length]
	case verbs.WRAtomicFetchAndAdd:
		if found := binary.NativeEndian.Uint64(local); found != q.found {
			e.Fatalf("request %d: the atomic returned %d, want %d", q.ID, found, q.found)
		}
	}
	if want != nil && !bytes.Equal(local, want) {
		e.Fatalf("request %d: the %d local and remote bytes differ", q.ID, q.length)
	}
	e.done++
}

// badStep posts requests and handles completions; it returns true if there were any. Receives are checked before the
// completion of their request, since afterwards the slot is reused.
func badStep(ends [2]*badEnd, count int) (some bool) {
	var sent, received [2][]verbs.WC
	for i, e := range ends {
		for e.posted < count && e.posted < e.done+badSlots {
			e.post()
		}
		sent[i] = e.poll(e.sends)
	}
	for i, e := range ends {
		received[i] = e.poll(e.recvs)
		some = some || len(sent[i])+len(received[i]) > 0
	}
	for i, e := range ends {
		for _, wc := range received[1-i] {
			e.received(&wc)
		}
		for _, wc := range sent[i] {
			e.completed(&wc)
		}
	}
	return some
}

func (e *badEnd) poll(cq *verbs.CQ) []verbs.WC {
	var wcs [2 * badSlots]verbs.WC
	n, err := cq.Poll(wcs[:])
	check(e, err)
	return wcs[:n]
}

// TestConnectionOverABadWire posts all kinds of requests at both ends of a connection, over a wire with every
// impairment: each request is carried out once, in order and correctly.
func TestConnectionOverABadWire(t *testing.T) {
	t.Parallel()
	for _, network := range []Network{NetworkXDP, NetworkUDP} {
		t.Run(string(network), func(t *testing.T) { overABadWire(t, 1, WithNetwork(network)) })
	}
	t.Run("several workers", func(t *testing.T) { overABadWire(t, 3, WithWorkers(3)) })
}

// overABadWire runs the ends as programs of a worker other than the first, if there are several. The wire puts all
// packets into one queue, so they are handed over.
func overABadWire(t *testing.T, workers int, option Option) {
	count, seed := 60, rand.Uint64()
	if text := os.Getenv(badWireVariable); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		check(t, err)
	}
	for _, row := range []struct {
		name string
		lab.Impairment
	}{
		{"loss", lab.Impairment{Loss: 0.02}},
		{"duplication", lab.Impairment{Duplication: 0.1}},
		{"corruption", lab.Impairment{Corruption: 0.02}},
		{"reordering", lab.Impairment{Delay: 0.02, DelayTime: 500 * time.Microsecond}},
		{"delay", lab.Impairment{Delay: 1, DelayTime: 200 * time.Microsecond}},
		{"all", lab.Impairment{Loss: 0.01, Duplication: 0.02, Corruption: 0.01, Delay: 0.01, DelayTime: time.Millisecond}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Logf("seed %d", seed)
			hosts := labtest.BadPair(t, seed, row.Impairment, lab.WithQueues(workers))
			a, b := newBadEnd(t, open(t, hosts.A, option), workers, seed), newBadEnd(t, open(t, hosts.B, option), workers, seed+1)
			a.connect(b, "10.77.0.2")
			b.connect(a, "10.77.0.1")
			for a.done < count || b.done < count {
				if !badStep([2]*badEnd{a, b}, count) {
					time.Sleep(50 * time.Microsecond) // the wire needs a processor
				}
			}
			if found := [2]uint64{binary.NativeEndian.Uint64(a.slot(badNumber)), binary.NativeEndian.Uint64(b.slot(badNumber))}; found != [2]uint64{b.sum, a.sum} {
				t.Errorf("numbers: got %d, want %d and %d", found, b.sum, a.sum)
			}
			of, err := a.device.Statistics()
			check(t, err)
			t.Logf("%d packets sent, %d retransmitted; %+v", of.Engine.Sent, of.Engine.Retransmits, counts(t, a.device))
		})
	}
}
