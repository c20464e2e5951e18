package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// A request that cannot be carried out fails in its turn also if what is ahead of it was about to be sent again
// when its acknowledgement came.
func TestFailsAfterALateAnswer(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	x.postAll(posted{o: ring.WRSend, length: 8}, posted{o: 99}, posted{o: ring.WRSend, length: 8})
	x.hear()
	x.sayAll(line{Transport: answer(0, wire.NAKSequence)}, line{Transport: answer(0, ackOf)})
	if heard := x.hear(); heard != "1: send 8B, 2: local QP operation error, 3: flushed" {
		t.Errorf("heard %q", heard)
	}
}
