package datapath

import "github.com/roced/roced/datapath/ring"

// Leaving says whether who closes a queue pair is to wait for its send requests: some have not wholly left, and
// can still. It is not to wait for answers: a peer that is dead gives none, and requests that were sent are
// completed by nothing else. Beyond what a window holds they leave as answers come; so it ends with the first
// packet that had to be sent again. It runs in Do.
func (e *Engine) Leaving(qp *QP) bool {
	c := qp.Connection
	if c == nil || !c.reliable() || qp.State != ring.QPStateRTS {
		return qp.Send.Waiting() > 0
	}
	begun := c.current < c.works.count || qp.Send.Behind(c.works.count) > 0
	return begun && !c.patient && c.retries == c.RetryCnt
}
