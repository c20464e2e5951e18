package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// pingpong is messages of one size there and back, one at a time, as ibv_ud_pingpong and
// ib_send_lat send them. Those carry no number, so that a lost one ends it: nobody could
// tell a late answer from the next. Of what comes twice, only what comes before the next
// message is sent can be passed over.
//
// Between two roced ping each message has its number, and nothing counts twice. The client
// begins: it sends the number as immediate data, which ibv_ud_pingpong has no eye for, and
// goes on without when the answer has none. The server numbers its answers if the question was.
type pingpong struct {
	e       *endpoint
	begins  bool          // this side sends first: the client
	peer    verbs.QPN     // that messages come from; 0 for any
	size    int           // bytes
	count   int           // messages each way
	timeout time.Duration // for each message that is to come
	sleep   bool          // while waiting; else it spins
	numbers bool          // messages carry their number, from 1 on
	payload []byte        // of each message that comes; nil for any

	sent, received int
	start          time.Time
	lastSent       time.Time
	last           time.Time       // that something was sent or came
	trips          []time.Duration // from each send to the message after it
	completion     [1]verbs.WC
}

// errNothingCame is a lost message, the own or the peer's.
var errNothingCame = errors.New("no message came")

// run sends and receives until all messages have gone both ways.
func (p *pingpong) run(ctx context.Context, progress *progress) error {
	p.e.shape(p.size, verbs.WRSend)
	p.start = time.Now()
	for p.sent+p.received < 2*p.count {
		turn := p.receive
		if p.isOn() {
			turn = p.send
		}
		if err := turn(ctx); err != nil {
			return err
		}
		progress.add(1)
	}
	return p.e.reapAll(ctx, p.sleep)
}

// isOn says whether this side is to send next.
func (p *pingpong) isOn() bool {
	if p.begins {
		return p.sent == p.received
	}
	return p.sent < p.received
}

// explain says what went and what came until nothing came any more, and where to look.
// It is unix.ETIMEDOUT.
func (p *pingpong) explain(d *device, before []counter) error {
	return fmt.Errorf("sent %d messages and received %d, of %d each way; then nothing came for %v (%s): %w",
		p.sent, p.received, p.count, p.timeout, d.dropsSince(before), unix.ETIMEDOUT)
}

// elapsed is from the first message to the last.
func (p *pingpong) elapsed() time.Duration { return p.last.Sub(p.start) }

func (p *pingpong) send(ctx context.Context) error {
	if err := errors.Join(p.passOver(ctx), p.e.reapUntil(ctx, p.sleep, 1)); err != nil {
		return err
	}
	p.number()
	p.lastSent = time.Now()
	p.last = p.lastSent
	p.sent++
	return errors.Join(p.e.postSends(1), p.e.reap())
}

// number puts the number of the next message into it, if it is to have one.
func (p *pingpong) number() {
	_, wr := p.e.sendBuffer(0)
	wr.Opcode, wr.ImmData = verbs.WRSend, 0
	if p.numbers {
		wr.Opcode, wr.ImmData = verbs.WRSendWithImm, uint32(p.sent+1)
	}
}

// passOver takes what has come though nothing was due, since this side is to send: numbers
// would tell.
func (p *pingpong) passOver(ctx context.Context) error {
	for !p.numbers && ctx.Err() == nil {
		n, err := p.e.arrived(p.completion[:])
		if err != nil || n == 0 {
			return err
		}
		if err := p.e.postRecvs(n); err != nil {
			return err
		}
	}
	return context.Cause(ctx) // nil if it is not done
}

// isDue says whether a message is the next one, as far as it can be told.
func (p *pingpong) isDue(wc *verbs.WC) bool {
	if p.peer != 0 && wc.SrcQP != p.peer {
		return false
	}
	numbered := wc.Flags&verbs.WCWithImm != 0
	if numbered && wc.ImmData != uint32(p.received+1) {
		return false
	}
	p.numbers = numbered
	return true
}

// receive waits for the next message. What others than the peer send, and what comes again,
// is passed over.
func (p *pingpong) receive(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, errNothingCame)
	defer cancel()
	for {
		if _, err := p.e.receive(ctx, p.sleep, p.completion[:]); err != nil {
			return err
		}
		wc := &p.completion[0]
		if p.isDue(wc) {
			return errors.Join(p.take(wc), p.e.postRecvs(1))
		}
		if err := p.e.postRecvs(1); err != nil {
			return err
		}
	}
}

func (p *pingpong) take(wc *verbs.WC) error {
	p.last = time.Now()
	if p.sent > 0 {
		p.trips = append(p.trips, p.last.Sub(p.lastSent))
	}
	p.received++
	_, payload := wc.Payload(p.e.recvBuffer(wc))
	if err := p.check(payload); err != nil {
		return fmt.Errorf("message %d: %w", p.received, err)
	}
	return nil
}

// check names the first byte that is wrong. It is EBADMSG.
func (p *pingpong) check(payload []byte) error {
	if len(payload) != p.size {
		return fmt.Errorf("%d bytes, not %d; give both sides the same -s: %w", len(payload), p.size, unix.EBADMSG)
	}
	if p.payload == nil || bytes.Equal(payload, p.payload) {
		return nil
	}
	wrong := 0
	for payload[wrong] == p.payload[wrong] {
		wrong++
	}
	return fmt.Errorf("byte %d of %d is 0x%02x, not 0x%02x; do both sides use -c? %w", wrong, p.size, payload[wrong], p.payload[wrong], unix.EBADMSG)
}
