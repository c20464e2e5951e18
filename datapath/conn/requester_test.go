// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/ib"
)

// Limits of one packet in flight, and of many.
var (
	single = flight.Limits{Window: 1, Grant: flight.Unlimited, Reads: flight.Unlimited}
	ample  = flight.Limits{Window: 1 << 10, Grant: flight.Unlimited, Reads: flight.Unlimited}
)

// longPair is a queue pair that implements only Memory.
type longPair struct {
	QueuePair
	memory []byte
}

func (l *longPair) Memory(_ ib.SGE, _, length int, _ bool) ([]byte, int, bool) {
	return l.memory[:length], length, true
}

// The maximum length of a message, here in four pieces, is ring.MaxMessage.
func TestLongestRequest(t *testing.T) {
	const quarter = ring.MaxMessage / 4
	memory, err := unix.Mmap(-1, 0, quarter+1, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	r := &Requester{Attr: &Attr{Service: wire.ServiceRC}, QP: &longPair{memory: memory}, MaxSendSGE: 4}
	for length, want := range map[uint32]ib.WCStatus{quarter: ib.WCSuccess, quarter + 1: ib.WCLocLenErr} {
		w := work{SendConnected: ring.SendConnected{Opcode: ib.WRSend, SGECount: 4}}
		data := make([]byte, 4*ring.SGELen)
		for i := range 4 {
			ring.PutSGE(data[i*ring.SGELen:], ib.SGE{Length: quarter})
		}
		ring.PutSGE(data, ib.SGE{Length: length})
		if r.check(&w, data); w.status != want {
			t.Errorf("%d bytes: %v", length+3*quarter, w.status)
		}
	}
}

// Requests whose packets together exceed half of all PSNs are not in progress at the same time.
func TestHalfOfThePSNs(t *testing.T) {
	const quarter = ring.MaxMessage / 4
	for less, want := range []Step{Idle, Ready} { // two requests of maximum length exceed it by one packet
		w := newWorld(t, rand.New(rand.NewPCG(1, 0)), wire.ServiceRC)
		s := w.a
		s.MTU, s.requester.QP = wire.MTU256, &longPair{}
		for _, opcode := range []ib.Opcode{ib.WRRDMARead, ib.WRRDMAWrite} {
			list := s.queue.PutConnected(&ring.SendConnected{Opcode: opcode, SGECount: 4})
			for i := range 4 {
				ring.PutSGE(list[i*ring.SGELen:], ib.SGE{Length: quarter})
			}
			if opcode == ib.WRRDMAWrite {
				ring.PutSGE(list, ib.SGE{Length: uint32(quarter - less*256)})
			}
		}
		s.queue.Publish()
		if s.requester.Next(&single, &s.packet) != Ready || s.requester.Fill(w.now, &s.packet, nil) != Ready {
			t.Fatalf("the READ is not sent: %s", s.describe())
		}
		if got := s.requester.Next(&ample, &s.packet); got != want {
			t.Errorf("%d packets less: %v", less, got)
		}
	}
}

// An unreliable connection, which gets no acknowledgements, continues to send beyond half of all PSNs, the limit of a
// reliable one, and wraps around.
func TestUnreliableGoesOn(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(1, 0)), wire.ServiceUC)
	s := w.a
	s.requester.SigAll = false
	for i := range waittest.Often(1<<24 + 5) { // CI sends all of them
		s.queue.PutConnected(&ring.SendConnected{ID: uint64(i), Opcode: ib.WRSend, Flags: ib.SendInline})
		s.queue.Publish()
		if s.requester.Next(&single, &s.packet) != Ready || s.requester.Fill(w.now, &s.packet, nil) != Ready {
			t.Fatalf("message %d is not sent: %s", i, s.describe())
		}
		s.requester.Sent()
	}
}
