// SPDX-License-Identifier: Apache-2.0

package pingpong

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// Exchange exchanges messages of one size in round trips, one at a time, like ibv_ud_pingpong and
// ib_send_lat. Their messages have no number. A lost message therefore ends the exchange, because a late
// response looks like the next one, and a duplicate is only detected if it arrives before the next message is
// sent.
//
// Two roced ping number their messages, so duplicates are always detected. The client sends the number as
// immediate data, which ibv_ud_pingpong ignores, and stops numbering if the response has none. The server
// numbers its responses if the client's messages have numbers.
type Exchange struct {
	Endpoint Endpoint
	To       ud.Addr       // destination of messages
	Data     []byte        // payload, at least Size bytes
	Begins   bool          // this side sends first: the client
	Peer     verbs.QPN     // sender of messages; 0 for any
	Size     int           // bytes
	Count    int           // messages in each direction
	Timeout  time.Duration // for each received message
	Sleep    bool          // sleep while waiting; otherwise spin
	Numbers  bool          // messages have a number, from 1
	Payload  []byte        // expected payload; nil for any
	Each     func()        // called for each received message; may be nil

	Sent, Received int
	start          time.Time
	lastSent       time.Time
	last           time.Time       // time of the last send or receive
	Trips          []time.Duration // times from each send to the next receive
	out, in        [1]ud.Message
}

// Endpoint sends and receives: a card.Endpoint or a card.Stream.
type Endpoint interface {
	SendAll(ctx context.Context, messages []ud.Message) error
	Receive(ctx context.Context, sleep bool, messages []ud.Message) (int, error)
	Arrived(messages []ud.Message) (int, error)
	Finish(ctx context.Context) error
}

// ErrNothingCame reports that no message arrived in time: one of this side or of the peer was lost.
var ErrNothingCame = errors.New("no message received")

// Run sends and receives until all messages have been exchanged.
func (p *Exchange) Run(ctx context.Context, progress *cli.Progress) error {
	p.start = time.Now()
	for p.Sent+p.Received < 2*p.Count {
		turn := p.receive
		if p.sendsNext() {
			turn = p.send
		}
		if err := turn(ctx); err != nil {
			return err
		}
		progress.Add(1)
	}
	return p.Endpoint.Finish(ctx)
}

// sendsNext reports whether this side sends next.
func (p *Exchange) sendsNext() bool {
	if p.Begins {
		return p.Sent == p.Received
	}
	return p.Sent < p.Received
}

// Explain returns unix.ETIMEDOUT with the numbers of messages before the timeout, and hints at the cause.
func (p *Exchange) Explain(d *card.Device, before []card.Counter) error {
	advice := ""
	if p.Received == 0 {
		advice = "; " + d.Silence(before, p.Size)
	}
	return fmt.Errorf("sent %d messages and received %d of %d each way; no further message received in %v (%s)%s: %w",
		p.Sent, p.Received, p.Count, p.Timeout, d.DropsSince(before), advice, unix.ETIMEDOUT)
}

// Elapsed returns the time from the first message to the last.
func (p *Exchange) Elapsed() time.Duration { return p.last.Sub(p.start) }

func (p *Exchange) send(ctx context.Context) error {
	if err := p.discardDuplicates(ctx); err != nil {
		return err
	}
	p.out[0] = ud.Message{To: p.To, Data: p.Data[:p.Size]}
	if p.Numbers {
		p.out[0].Imm, p.out[0].HasImm = uint32(p.Sent+1), true
	}
	p.lastSent = time.Now()
	p.last = p.lastSent
	p.Sent++
	return p.Endpoint.SendAll(ctx, p.out[:])
}

// discardDuplicates discards duplicates received before this side sends. With numbers they are detected later.
func (p *Exchange) discardDuplicates(ctx context.Context) error {
	for !p.Numbers && ctx.Err() == nil {
		n, err := p.Endpoint.Arrived(p.in[:])
		if err != nil || n == 0 {
			return err
		}
		p.in[0].Release()
	}
	return context.Cause(ctx) // nil if ctx is not done
}

// isDue reports whether a message is the next one. Without numbers it cannot exclude that the message is a duplicate.
func (p *Exchange) isDue(m *ud.Message) bool {
	if p.Peer != 0 && m.From.QPN != p.Peer {
		return false
	}
	if m.HasImm && m.Imm != uint32(p.Received+1) {
		return false
	}
	p.Numbers = m.HasImm
	return true
}

// receive waits for the next message. It discards duplicates and messages of other senders.
func (p *Exchange) receive(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Timeout, ErrNothingCame)
	defer cancel()
	for {
		if _, err := p.Endpoint.Receive(ctx, p.Sleep, p.in[:]); err != nil {
			return err
		}
		m := &p.in[0]
		due := p.isDue(m)
		var err error
		if due {
			err = p.accept(m)
		}
		m.Release()
		if due {
			return err
		}
	}
}

func (p *Exchange) accept(m *ud.Message) error {
	p.last = time.Now()
	if p.Sent > 0 {
		p.Trips = append(p.Trips, p.last.Sub(p.lastSent))
	}
	p.Received++
	if err := p.check(m.Data); err != nil {
		return fmt.Errorf("message %d: %w", p.Received, err)
	}
	if p.Each != nil {
		p.Each()
	}
	return nil
}

// check returns EBADMSG with the first invalid byte.
func (p *Exchange) check(payload []byte) error {
	if len(payload) != p.Size {
		return fmt.Errorf("got %d bytes, want %d; use the same -s on both sides: %w", len(payload), p.Size, unix.EBADMSG)
	}
	if p.Payload == nil || bytes.Equal(payload, p.Payload) {
		return nil
	}
	wrong := 0
	for payload[wrong] == p.Payload[wrong] {
		wrong++
	}
	return fmt.Errorf("byte %d of %d: got 0x%02x, want 0x%02x; use --check on both sides: %w", wrong, p.Size, payload[wrong], p.Payload[wrong], unix.EBADMSG)
}
