package card

import (
	"fmt"

	"github.com/roced/roced/verbs"
)

// What an endpoint does with its queues: it fills and posts its buffers in turn, and takes
// what has completed.

// shape makes all messages sent from now on so long, and of this operation.
func (e *Endpoint) Shape(size int, opcode verbs.Opcode) {
	for i := range e.sends {
		e.sends[i].SGList[0].Length, e.sends[i].Opcode = uint32(size), opcode
	}
}

// SetImmediate puts immediate data into all messages sent from now on.
func (e *Endpoint) SetImmediate(data uint32) {
	for i := range e.sends {
		e.sends[i].ImmData = data
	}
}

// InFlight is how many sends have not completed.
func (e *Endpoint) InFlight() int { return e.sending }

// SendBuffer is what the i-th of the next sends will send, and its request.
func (e *Endpoint) SendBuffer(i int) ([]byte, *verbs.SendWR) {
	wr := &e.sends[(e.nextSend+i)%len(e.sends)]
	sge := wr.SGList[0]
	return e.mr.Bytes()[sge.Addr : sge.Addr+uint64(sge.Length)], wr
}

// Fill puts a payload into all messages that will be sent.
func (e *Endpoint) Fill(payload []byte) {
	e.Shape(len(payload), verbs.WRSend)
	for i := range e.sends {
		buffer, _ := e.SendBuffer(i)
		copy(buffer, payload)
	}
}

// Idle is how many sends can be posted now.
func (e *Endpoint) Idle() int { return len(e.sends) - e.sending }

// PostSends posts the next n sends, of which the last one is signaled and its ID says for
// how many it stands.
func (e *Endpoint) PostSends(n int) error {
	for n > 0 {
		wrs := e.sends[e.nextSend:min(e.nextSend+n, len(e.sends))]
		last := &wrs[len(wrs)-1]
		last.ID, last.Flags = uint64(len(wrs)), verbs.SendSignaled
		err := e.QP.PostSend(wrs)
		last.Flags = 0
		if err != nil {
			return fmt.Errorf("post send: %w", err)
		}
		e.sending += len(wrs)
		e.nextSend = (e.nextSend + len(wrs)) % len(e.sends)
		n -= len(wrs)
	}
	return nil
}
