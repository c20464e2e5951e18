package datapath

// Tally counts the packets of a queue pair, and their bytes of payload, from when it is set: those that were delivered
// to it, and those that it sent, with what was sent again. It is read in Do.
type Tally struct{ Received, ReceivedBytes, Sent, SentBytes uint64 }

// SetTally has a queue pair counted; nil ends that. It runs in Do.
func (qp *QP) SetTally(t *Tally) { qp.tally = t }

func (t *Tally) received(bytes int) {
	t.Received++
	t.ReceivedBytes += uint64(bytes)
}

func (t *Tally) sent(bytes int) {
	t.Sent++
	t.SentBytes += uint64(bytes)
}
