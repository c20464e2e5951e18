// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// stream sends messages of one size from one host to another. UD has no flow control, so the demo limits the messages
// in flight to a window that fits the socket buffer and the posted receives. It checks each message.
type stream struct {
	arrivals
	from, to         *host
	fromGID, toGID   verbs.GID
	direction        int
	size, messages   int
	sent, window     int
	withImmediate    int
	elapsed          time.Duration
	out, in          [card.Batch]ud.Message
	version, heading string
}

// aim sets the source address for s.version, and the receiver as the destination.
func (s *stream) aim(ctx context.Context) error {
	source, err := s.from.source(s.version)
	if err != nil {
		return err
	}
	target, err := s.to.source(s.version)
	if err != nil {
		return err
	}
	s.fromGID, s.toGID = source, target
	if s.window, err = windowOf(s.to); err != nil {
		return err
	}
	s.from.peer = ud.Addr{GID: target, QPN: s.to.QPN(), QKey: card.TestQKey}
	s.prepare(s.from.peer)
	return s.from.Aim(ctx, s.from.peer)
}

// prepare creates the messages to a destination, without payload.
func (s *stream) prepare(to ud.Addr) {
	for i := range s.out {
		s.out[i] = ud.Message{To: to, Data: make([]byte, s.size)}
	}
}

// run sends all messages and returns when all are received or counted as lost.
func (s *stream) run(ctx context.Context) error {
	if err := s.aim(ctx); err != nil {
		return err
	}
	start := time.Now()
	for s.done() < s.messages {
		if err := s.step(ctx); err != nil {
			return fmt.Errorf("%s, %s, %d bytes: %w", s.heading, s.version, s.size, err)
		}
	}
	s.elapsed = time.Since(start)
	return s.from.Finish(ctx)
}

// step sends as many messages as the window allows and receives arrived ones.
func (s *stream) step(ctx context.Context) error {
	if err := s.send(ctx); err != nil {
		return err
	}
	return s.receive(ctx)
}

// receive checks the messages that have arrived. It fails once ctx is done.
func (s *stream) receive(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n, err := s.to.Arrived(s.in[:])
	if err != nil {
		return err
	}
	if n == 0 {
		return s.emptyPoll()
	}
	defer s.to.Release(s.in[:n])
	for i := range n {
		if err := s.match(func(number uint32) error { return s.check(&s.in[i], number) }); err != nil {
			return fmt.Errorf("message %d: %w", s.received, err)
		}
	}
	return nil
}

func (s *stream) send(ctx context.Context) error {
	n := min(s.window-s.inFlight(), s.messages-s.sent, card.Batch)
	for i := range n {
		s.write(&s.out[i], uint32(s.sent+i))
		s.expect(uint32(s.sent + i))
	}
	s.sent += n
	return s.from.SendAll(ctx, s.out[:n])
}

// hasImmediate reports whether a message carries its number as immediate data: every fourth does.
func hasImmediate(number uint32) bool { return number%4 == 3 }

func (s *stream) write(m *ud.Message, number uint32) {
	newPattern(s.direction, number).fill(m.Data)
	m.Imm, m.HasImm = 0, hasImmediate(number)
	if m.HasImm {
		m.Imm = number
		s.withImmediate++
	}
}

// check compares all parts of a received message with the sent one.
func (s *stream) check(m *ud.Message, number uint32) error {
	switch {
	case len(m.Data) != s.size:
		return fmt.Errorf("got %d bytes, want %d", len(m.Data), s.size)
	case m.From.QPN != s.from.QPN():
		return fmt.Errorf("got source QP %v, want %v", m.From.QPN, s.from.QPN())
	case m.From.GID != s.fromGID || m.To.GID != s.toGID:
		return fmt.Errorf("got GRH from %v to %v, want from %v to %v", m.From.GID, m.To.GID, s.fromGID, s.toGID)
	case m.HasImm != hasImmediate(number):
		return fmt.Errorf("got immediate data: %t, want %t", m.HasImm, hasImmediate(number))
	case m.HasImm && m.Imm != number:
		return fmt.Errorf("got immediate data %d, want %d", m.Imm, number)
	}
	return newPattern(s.direction, number).check(m.Data)
}
