// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// slowPeer responds to READs one after another, with a delay for each packet. Like Soft-RoCE, it responds to repeated
// requests completely. It also implements the requester's queue pair.
type slowPeer struct {
	QueuePair
	*testing.T
	requester Requester
	limits    flight.Limits
	queue     *ring.SendProducer
	memory    []byte
	template  wire.Template
	now       time.Time
	owed      []Packet // READs without a complete response
	sent      uint32   // number of response packets sent for the first of them
	all       int      // number of all response packets
	loses     int      // every loses-th response packet is lost; 0: none
	completed int
	status    ib.WCStatus
}

const (
	slowReads  = 16
	slowLength = 2 << 20
	slowPace   = 40 * time.Microsecond // per packet
)

func newSlowPeer(t *testing.T, loses int) *slowPeer {
	t.Helper()
	s := &slowPeer{T: t, now: start, memory: make([]byte, slowLength), loses: loses, limits: ample}
	ends := wire.GIDFromAddr(netip.AddrFrom4([4]byte{10, 0, 0, 1}))
	s.template = wire.NewTemplate(wire.Path{Source: ends, Dest: ends})
	attr := &Attr{Service: wire.ServiceRC, MTU: wire.MTU1024, MaxRDAtomic: slowReads, Timeout: 14, RetryCnt: 7, RNRRetry: 7}
	s.requester = Requester{Attr: attr, QP: s, Counters: &Counters{}, SigAll: true, MaxSendSGE: 1, Mends: true}
	g := ring.ConnectedGeometry(slowReads, 1, 0)
	memory := ring.Alloc(g.Size())
	var err error
	if s.queue, err = ring.NewSendProducer(memory, g); err != nil {
		t.Fatal(err)
	}
	if s.requester.Queue, err = ring.NewSendConsumer(memory, g); err != nil {
		t.Fatal(err)
	}
	for _, state := range []ib.QPState{ib.QPStateInit, ib.QPStateRTR, ib.QPStateRTS} {
		s.requester.Enter(state)
	}
	for i := range slowReads {
		list := s.queue.PutConnected(&ring.SendConnected{ID: uint64(i), Opcode: ib.WRRDMARead, SGECount: 1})
		ring.PutSGE(list, ib.SGE{Length: slowLength})
	}
	s.queue.Publish()
	return s
}

func (s *slowPeer) Memory(_ ib.SGE, offset, length int, _ bool) ([]byte, int, bool) {
	return s.memory[offset : offset+length], length, true
}

func (s *slowPeer) CompleteSend(c Completion) {
	if s.completed++; c.Status != ib.WCSuccess {
		s.status = c.Status
	}
}

func (s *slowPeer) Fail(state ib.QPState) { s.requester.Enter(state) }
func (s *slowPeer) Note(ib.EventType)     {}

// ask makes the requester send.
func (s *slowPeer) ask() {
	for {
		var p Packet
		switch s.requester.Next(&s.limits, &p) {
		case Idle:
			return
		case Ready:
			if s.requester.Fill(s.now, &p, nil) == Ready {
				s.owed = append(s.owed, p)
			}
		}
	}
}

// answer sends a response packet or, if no READ is outstanding, advances the time to the requester's deadline.
func (s *slowPeer) answer() {
	if len(s.owed) == 0 {
		s.now = s.requester.Deadline()
		return
	}
	s.now = s.now.Add(slowPace)
	asked := &s.owed[0]
	length := 1024
	h := wire.Transport{Opcode: s.requester.Service.Of(readResponses.At(s.sent, 1, asked.psns)), PSN: asked.PSN.Plus(s.sent), PKey: wire.PKeyDefault}
	if s.sent++; s.sent == asked.psns {
		s.owed, s.sent = s.owed[1:], 0
	}
	if s.all++; s.loses > 0 && s.all%s.loses == 0 {
		return
	}
	s.hear(&h, length)
}

// hear delivers a packet to the requester.
func (s *slowPeer) hear(h *wire.Transport, length int) {
	frame := make([]byte, frameLen)
	var p wire.Packet
	if fault := wire.Parse(frame[:s.template.SealTransport(frame, h, length)], &p); fault != wire.FaultNone {
		s.Fatal(fault)
	}
	s.requester.Receive(s.now, &p)
}

// TestResponseOfTwoParts: a response must end with the requested part, even if the following part was requested too.
func TestResponseOfTwoParts(t *testing.T) {
	for packets, want := range map[uint32]ib.WCStatus{2: ib.WCSuccess, 3: ib.WCBadRespErr} {
		s := newSlowPeer(t, 0)
		s.requester.Long, s.limits.Part, s.requester.atOnce = true, 2, slowReads
		s.ask()
		if len(s.owed) != slowReads || s.owed[1].PSN != s.owed[0].PSN.Plus(2) || s.owed[1].Addr != 2048 || s.owed[1].Transport.Length != 2048 {
			t.Fatalf("%+v", s.owed)
		}
		h := wire.Transport{Opcode: s.requester.Service.Of(readResponses.At(0, packets, packets)), PSN: s.owed[0].PSN, Packets: packets, PKey: wire.PKeyDefault}
		if packets > 2 {
			h.Opcode = s.requester.Service.Of(wire.OpReadResponseMiddle)
		}
		s.hear(&h, int(packets)*1024)
		if s.status != want {
			t.Errorf("%d packets: %v", packets, s.status)
		}
	}
}

// TestPartsAreNoMoreThanReads: at most as many parts are requested at the same time as READs were outstanding, as the
// peer may keep only this number of requests.
func TestPartsAreNoMoreThanReads(t *testing.T) {
	s := newSlowPeer(t, 0)
	s.limits.Part = 2
	if s.ask(); len(s.owed) != 1 {
		t.Errorf("%d parts of the first READ at once", len(s.owed))
	}
	for ; s.completed < slowReads; s.ask() { // then the next READ is outstanding together with the last part
		if s.answer(); len(s.owed) > 2 {
			t.Fatalf("%d parts at once, %d READs have completed", len(s.owed), s.completed)
		}
	}
}

// TestSlowPeerIsNotAskedAgain: a peer that is still responding to earlier requests gets no retransmissions, and lost
// responses are requested again only once. Otherwise each delay of a response would cause further responses.
func TestSlowPeerIsNotAskedAgain(t *testing.T) {
	const whole = slowReads * slowLength / 1024
	for name, row := range map[string]struct {
		part        int
		loses, most int
	}{
		"no loss":                           {0, 0, whole},
		"one response is lost":              {0, whole / 2, 2 * whole},
		"some are":                          {0, 9001, 6 * whole},
		"no loss, in parts":                 {256, 0, whole},
		"some responses are lost, in parts": {256, 9001, 2 * whole},
	} {
		s := newSlowPeer(t, row.loses)
		s.limits.Part = row.part
		for s.ask(); s.completed < slowReads && s.status == ib.WCSuccess; s.ask() {
			if s.answer(); !s.requester.Deadline().IsZero() && !s.requester.Deadline().After(s.now) {
				s.requester.Expire(s.now)
			}
		}
		if n := s.requester.Counters.Timeouts; s.status != ib.WCSuccess || n > 0 || s.all > row.most {
			t.Errorf("%s: %v, got %d responses, want %d, %d timeouts", name, s.status, s.all, whole, n)
		}
	}
}
