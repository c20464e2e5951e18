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

// Exchange is messages of one size there and back, one at a time, as ibv_ud_pingpong and ib_send_lat
// send them. Their messages carry no number. So a lost message ends the exchange, since a late answer
// looks like the next one; and a duplicate is only recognised if it comes before the next message is
// sent.
//
// Two roced ping number their messages, so no duplicate is counted. The client sends the number as
// immediate data, which ibv_ud_pingpong ignores, and stops numbering if the answer has none. The
// server numbers its answers if the client's messages are numbered.
type Exchange struct {
	Endpoint Endpoint
	To       ud.Addr       // where messages go
	Data     []byte        // that they carry, at least Size bytes
	Begins   bool          // this side sends first: the client
	Peer     verbs.QPN     // that messages come from; 0 for any
	Size     int           // bytes
	Count    int           // messages each way
	Timeout  time.Duration // for each message that is to come
	Sleep    bool          // while waiting; else it spins
	Numbers  bool          // messages carry their number, from 1 on
	Payload  []byte        // of each message that comes; nil for any
	Each     func()        // is called for each message that has come; may be nil

	Sent, Received int
	start          time.Time
	lastSent       time.Time
	last           time.Time       // that something was sent or came
	Trips          []time.Duration // from each send to the message after it
	out, in        [1]ud.Message
}

// Endpoint is what sends and receives: a card.Endpoint, or a card.Stream.
type Endpoint interface {
	SendAll(ctx context.Context, messages []ud.Message) error
	Receive(ctx context.Context, sleep bool, messages []ud.Message) (int, error)
	Arrived(messages []ud.Message) (int, error)
	Finish(ctx context.Context) error
}

// ErrNothingCame means that no message came in time: this side's or the peer's was lost.
var ErrNothingCame = errors.New("no message came")

// Run sends and receives until all messages have gone both ways.
func (p *Exchange) Run(ctx context.Context, progress *cli.Progress) error {
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
	return p.Endpoint.Finish(ctx)
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
	advice := ""
	if p.Received == 0 {
		advice = "; " + d.Silence(before, p.Size)
	}
	return fmt.Errorf("sent %d messages and received %d, of %d each way; then nothing came for %v (%s)%s: %w",
		p.Sent, p.Received, p.Count, p.Timeout, d.DropsSince(before), advice, unix.ETIMEDOUT)
}

// Elapsed is from the first message to the last.
func (p *Exchange) Elapsed() time.Duration { return p.last.Sub(p.start) }

func (p *Exchange) send(ctx context.Context) error {
	if err := p.passOver(ctx); err != nil {
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

// passOver discards duplicates that have come before this side sends. With numbers they are
// recognised later.
func (p *Exchange) passOver(ctx context.Context) error {
	for !p.Numbers && ctx.Err() == nil {
		n, err := p.Endpoint.Arrived(p.in[:])
		if err != nil || n == 0 {
			return err
		}
		p.in[0].Release()
	}
	return context.Cause(ctx) // nil if it is not done
}

// isDue says whether a message is the next one; without numbers, whether it can be.
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

// receive waits for the next message. It discards duplicates, and messages that are not from the
// peer.
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
			err = p.take(m)
		}
		m.Release()
		if due {
			return err
		}
	}
}

func (p *Exchange) take(m *ud.Message) error {
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
	return fmt.Errorf("byte %d of %d is 0x%02x, not 0x%02x; do both sides use --check? %w", wrong, p.Size, payload[wrong], p.Payload[wrong], unix.EBADMSG)
}
