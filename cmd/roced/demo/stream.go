package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
)

// stream is messages of one size from one host to another. UD has no flow control:
// the demo keeps a window, so that nothing is lost, and checks each message.
type stream struct {
	from, to         *host
	fromGID, toGID   verbs.GID
	direction        int
	size, messages   int
	sent, received   int
	withImmediate    int
	elapsed          time.Duration
	lastArrival      time.Time
	completions      [card.Batch]verbs.WC
	version, heading string
}

// aimAt makes the sender's requests go from its address of an IP version to the receiver's.
func (s *stream) aimAt() error {
	source, err := s.from.source(s.version)
	if err != nil {
		return err
	}
	target, err := s.to.source(s.version)
	if err != nil {
		return err
	}
	s.fromGID, s.toGID = source.GID, target.GID
	return s.from.Aim(source.Index, target.GID, s.to.QP.Number())
}

// run sends all messages and returns when all have arrived.
func (s *stream) run(ctx context.Context) error {
	if err := s.aimAt(); err != nil {
		return err
	}
	s.from.Shape(s.size, verbs.WRSend)
	start := time.Now()
	s.lastArrival = start
	for s.received < s.messages {
		if err := s.step(ctx); err != nil {
			return fmt.Errorf("%s, %s, %d bytes: %w", s.heading, s.version, s.size, err)
		}
	}
	s.elapsed = time.Since(start)
	return s.from.ReapAll(ctx, false)
}

// step sends what the window permits and takes what has arrived.
func (s *stream) step(ctx context.Context) error {
	if err := s.send(); err != nil {
		return err
	}
	return s.take(ctx)
}

// take checks what has arrived, until ctx is done: also when there is always something.
func (s *stream) take(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n, err := s.to.Arrived(s.completions[:])
	if err != nil {
		return err
	}
	if n == 0 {
		return s.checkStall()
	}
	s.lastArrival = time.Now()
	for i := range n {
		if err := s.check(&s.completions[i], uint32(s.received)); err != nil {
			return fmt.Errorf("message %d: %w", s.received, err)
		}
		s.received++
	}
	return s.to.PostRecvs(n)
}

func (s *stream) send() error {
	if err := s.from.Reap(); err != nil {
		return err
	}
	n := min(window-(s.sent-s.received), s.messages-s.sent, s.from.Idle(), card.Batch)
	for i := range n {
		payload, wr := s.from.SendBuffer(i)
		s.write(payload, wr, uint32(s.sent+i))
	}
	s.sent += n
	return s.from.PostSends(n)
}

// hasImmediate says which messages carry their number as immediate data: every fourth.
func hasImmediate(number uint32) bool { return number%4 == 3 }

func (s *stream) write(payload []byte, wr *verbs.SendWR, number uint32) {
	newPattern(s.direction, number).fill(payload)
	wr.Opcode, wr.ImmData = verbs.WRSend, 0
	if hasImmediate(number) {
		wr.Opcode, wr.ImmData = verbs.WRSendWithImm, number
		s.withImmediate++
	}
}

// check compares what has arrived with what was sent: everything that the receiver is told.
func (s *stream) check(wc *verbs.WC, number uint32) error {
	grh, payload := wc.Payload(s.to.RecvBuffer(wc))
	withImm := wc.Flags&verbs.WCWithImm != 0
	switch {
	case len(payload) != s.size:
		return fmt.Errorf("%d bytes, sent were %d", len(payload), s.size)
	case wc.SrcQP != s.from.QP.Number():
		return fmt.Errorf("it is from QP %v, sent by %v", wc.SrcQP, s.from.QP.Number())
	case grh.SGID() != s.fromGID || grh.DGID() != s.toGID:
		return fmt.Errorf("GRH says from %v to %v, it was from %v to %v", grh.SGID(), grh.DGID(), s.fromGID, s.toGID)
	case withImm != hasImmediate(number):
		return fmt.Errorf("with immediate data: %t, sent was %t", withImm, hasImmediate(number))
	case withImm && wc.ImmData != number:
		return fmt.Errorf("immediate data %d, sent was %d", wc.ImmData, number)
	}
	return newPattern(s.direction, number).check(payload)
}

func (s *stream) checkStall() error {
	if time.Since(s.lastArrival) > card.StallTimeout {
		return fmt.Errorf("message %d of %d did not arrive within %v", s.received, s.messages, card.StallTimeout)
	}
	return nil
}
