// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
)

// In SQD sends wait; after the return to RTS they are sent without another doorbell.
func TestDrainedQueueGoesOn(t *testing.T) {
	r := newRig(t)
	r.setState(ib.QPStateSQD)
	r.postSend(ring.Send{})
	r.run()
	if len(r.link.out) != 0 {
		t.Fatal("sent in SQD")
	}
	r.setState(ib.QPStateRTS)
	r.run()
	r.sent()
}

// ERR flushes outstanding requests in order, and later ones.
func TestFlush(t *testing.T) {
	r := newRig(t)
	for i := range 3 {
		r.postRecv(uint64(10+i), piece(0, 100))
		r.postSend(ring.Send{ID: uint64(i)})
	}
	r.setState(ib.QPStateErr)
	ids := func() (all []uint64) {
		for _, c := range r.completions() {
			if c.Status != ib.WCWRFlushErr {
				t.Errorf("%+v", c)
			}
			all = append(all, c.ID)
		}
		return all
	}
	if got := ids(); len(got) != 6 || got[0] != 0 || got[2] != 2 || got[3] != 10 || got[5] != 12 {
		t.Errorf("flushed %v", got)
	}
	if !r.recv.MustRing() {
		t.Error("MustRing is not set")
	}
	r.postRecv(20, piece(0, 100))
	r.doorbell.Ring(3)
	r.run()
	if got := ids(); len(got) != 1 || got[0] != 20 {
		t.Errorf("posted in ERR: flushed %v", got)
	}
}

func TestResetDropsSilently(t *testing.T) {
	r := newRig(t)
	r.postRecv(1, piece(0, 100))
	r.postSend(ring.Send{ID: 2, Flags: ib.SendSignaled})
	r.setState(ib.QPStateReset)
	r.setState(ib.QPStateRTS)
	r.link.in = [][]byte{datagram(nil)}
	r.run()
	if got := r.completions(); got != nil || len(r.link.out) != 0 {
		t.Errorf("completions %+v, %d frames", got, len(r.link.out))
	}
}
