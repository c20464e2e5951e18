package datapath

import "github.com/roced/roced/datapath/ring"

// Tally counts the packets of a queue pair, and their bytes of payload, from when it is set: those that were delivered
// to it, and those that it sent, with what was sent again. It is read in Do.
type Tally struct{ Received, ReceivedBytes, Sent, SentBytes uint64 }

// SetTally has a queue pair counted; nil ends that. It runs in Do.
func (qp *QP) SetTally(t *Tally) { qp.tally = t }

// CQTally counts what a CQ is given, from when it is set: requests that were carried out, and others. It is read in Do.
type CQTally struct{ Completions, Errors uint64 }

// SetTally has a CQ counted; nil ends that. It runs in Do.
func (cq *CQ) SetTally(t *CQTally) { cq.tally = t }

func (t *CQTally) completed(status ring.WCStatus) {
	if status == ring.WCSuccess {
		t.Completions++
	} else {
		t.Errors++
	}
}

func (t *Tally) received(bytes int) {
	t.Received++
	t.ReceivedBytes += uint64(bytes)
}

func (t *Tally) sent(bytes int) {
	t.Sent++
	t.SentBytes += uint64(bytes)
}
