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
	"golang.org/x/sys/unix"
)

// Exchange is messages of one size there and back, one at a time, as ibv_ud_pingpong and
// ib_send_lat send them. Those carry no number, so that a lost one ends it: nobody could
// tell a late answer from the next. Of what comes twice, only what comes before the next
// message is sent can be passed over.
//
// Between two roced ping each message has its number, and nothing counts twice. The client
// begins: it sends the number as immediate data, which ibv_ud_pingpong has no eye for, and
// goes on without when the answer has none. The server numbers its answers if the question was.
type Exchange struct {
	Endpoint *card.Endpoint
	Begins   bool          // this side sends first: the client
	Peer     verbs.QPN     // that messages come from; 0 for any
	Size     int           // bytes
	Count    int           // messages each way
	Timeout  time.Duration // for each message that is to come
	Sleep    bool          // while waiting; else it spins
	Numbers  bool          // messages carry their number, from 1 on
	Payload  []byte        // of each message that comes; nil for any

	Sent, Received int
	start          time.Time
	lastSent       time.Time
	last           time.Time       // that something was sent or came
	Trips          []time.Duration // from each send to the message after it
	completion     [1]verbs.WC
}

// ErrNothingCame is a lost message, the own or the peer's.
var ErrNothingCame = errors.New("no message came")

// Run sends and receives until all messages have gone both ways.
func (p *Exchange) Run(ctx context.Context, progress *cli.Progress) error {
	p.Endpoint.Shape(p.Size, verbs.WRSend)
	p.start = time.Now()
	for p.Sent+p.Received < 2*p.Count {
		turn := p.receive
		if p.isOn() {
			turn = p.send
		}
		if err := turn(ctx); err != nil {
			return err
		}
		progress.Add(1)
	}
	return p.Endpoint.ReapAll(ctx, p.Sleep)
}

// isOn says whether this side is to send next.
func (p *Exchange) isOn() bool {
	if p.Begins {
		return p.Sent == p.Received
	}
	return p.Sent < p.Received
}

// Explain says what went and what came until nothing came any more, and where to look.
// It is unix.ETIMEDOUT.
func (p *Exchange) Explain(d *card.Device, before []card.Counter) error {
	return fmt.Errorf("sent %d messages and received %d, of %d each way; then nothing came for %v (%s): %w",
		p.Sent, p.Received, p.Count, p.Timeout, d.DropsSince(before), unix.ETIMEDOUT)
}

// Elapsed is from the first message to the last.
func (p *Exchange) Elapsed() time.Duration { return p.last.Sub(p.start) }

func (p *Exchange) send(ctx context.Context) error {
	if err := errors.Join(p.passOver(ctx), p.Endpoint.ReapUntil(ctx, p.Sleep, 1)); err != nil {
		return err
	}
	p.number()
	p.lastSent = time.Now()
	p.last = p.lastSent
	p.Sent++
	return errors.Join(p.Endpoint.PostSends(1), p.Endpoint.Reap())
}

// number puts the number of the next message into it, if it is to have one.
func (p *Exchange) number() {
	_, wr := p.Endpoint.SendBuffer(0)
	wr.Opcode, wr.ImmData = verbs.WRSend, 0
	if p.Numbers {
		wr.Opcode, wr.ImmData = verbs.WRSendWithImm, uint32(p.Sent+1)
	}
}

// passOver takes what has come though nothing was due, since this side is to send: numbers
// would tell.
func (p *Exchange) passOver(ctx context.Context) error {
	for !p.Numbers && ctx.Err() == nil {
		n, err := p.Endpoint.Arrived(p.completion[:])
		if err != nil || n == 0 {
			return err
		}
		if err := p.Endpoint.PostRecvs(n); err != nil {
			return err
		}
	}
	return context.Cause(ctx) // nil if it is not done
}

// isDue says whether a message is the next one, as far as it can be told.
func (p *Exchange) isDue(wc *verbs.WC) bool {
	if p.Peer != 0 && wc.SrcQP != p.Peer {
		return false
	}
	numbered := wc.Flags&verbs.WCWithImm != 0
	if numbered && wc.ImmData != uint32(p.Received+1) {
		return false
	}
	p.Numbers = numbered
	return true
}

// receive waits for the next message. What others than the peer send, and what comes again,
// is passed over.
func (p *Exchange) receive(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Timeout, ErrNothingCame)
	defer cancel()
	for {
		if _, err := p.Endpoint.Receive(ctx, p.Sleep, p.completion[:]); err != nil {
			return err
		}
		wc := &p.completion[0]
		if p.isDue(wc) {
			return errors.Join(p.take(wc), p.Endpoint.PostRecvs(1))
		}
		if err := p.Endpoint.PostRecvs(1); err != nil {
			return err
		}
	}
}

func (p *Exchange) take(wc *verbs.WC) error {
	p.last = time.Now()
	if p.Sent > 0 {
		p.Trips = append(p.Trips, p.last.Sub(p.lastSent))
	}
	p.Received++
	_, payload := wc.Payload(p.Endpoint.RecvBuffer(wc))
	if err := p.check(payload); err != nil {
		return fmt.Errorf("message %d: %w", p.Received, err)
	}
	return nil
}

// check names the first byte that is wrong. It is EBADMSG.
func (p *Exchange) check(payload []byte) error {
	if len(payload) != p.Size {
		return fmt.Errorf("%d bytes, not %d; give both sides the same -s: %w", len(payload), p.Size, unix.EBADMSG)
	}
	if p.Payload == nil || bytes.Equal(payload, p.Payload) {
		return nil
	}
	wrong := 0
	for payload[wrong] == p.Payload[wrong] {
		wrong++
	}
	return fmt.Errorf("byte %d of %d is 0x%02x, not 0x%02x; do both sides use -c? %w", wrong, p.Size, payload[wrong], p.Payload[wrong], unix.EBADMSG)
}
