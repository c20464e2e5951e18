package rc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
)

// sender is a connection's requests. They are numbered from 1 on. A request's number gives its slot, with a
// buffer for what is copied, and is its ID. Requests complete in order, so the completion of one frees the
// slots of all before it too.
type sender struct {
	// reaping is a lock, taken before mu: only its holder polls the send CQ, so that completions are settled in
	// order.
	reaping chan struct{}
	done    [batch]verbs.WC // under reaping

	mu       sync.Mutex
	base     int // of the buffers, in the connection's memory
	memory   []byte
	stride   int
	depth    uint64
	every    uint64 // n-th request that is signaled, beside the last of each call
	posted   uint64 // number of the last request
	signaled uint64 // number of the last signaled one
	reaped   uint64 // number of the last known to be done
	broken   uint64 // number of the first that was not carried out; 0: none
	looked   uint64 // posted, when completions were last looked for
	lookedAt time.Duration
	waiters  int
	changed  chan struct{} // closed when completions were settled, if somebody waits
	slots    []slot
	requests [batch]verbs.SendWR
	sges     [batch]verbs.SGE

	// Of the connection.
	cq     *verbs.CQ
	mr     *verbs.MR
	spin   bool
	begin  time.Time
	life   context.Context
	ending *ending
}

// slot is what is known of a request that is outstanding.
type slot struct {
	opcode verbs.Opcode
	length int
	remote Remote
	into   []byte // where the buffer goes when the request is done; nil if it does not
}

// lookPause is after how long completions are looked for though few requests are outstanding.
const lookPause = time.Millisecond

func (s *sender) prepare(c *Conn, stride int) {
	depth := c.options.SendDepth
	s.cq, s.mr, s.spin, s.begin, s.life, s.ending = c.sendCQ, c.mr, c.options.Spin, c.begin, c.life, &c.ending
	s.reaping, s.changed = make(chan struct{}, 1), make(chan struct{})
	s.base = len(c.mr.Bytes()) - depth*stride
	s.memory, s.stride = c.mr.Bytes()[s.base:], stride
	s.depth, s.every = uint64(depth), uint64(max(1, min(batch/2, depth/4)))
	s.slots = make([]slot, depth)
	for i := range s.requests {
		s.requests[i].SGList = s.sges[i : i+1]
	}
}

// buffer is the memory of a slot, and where it begins in the connection's.
func (s *sender) buffer(place int) (memory []byte, offset int) {
	start := place * s.stride
	return s.memory[start : start+s.stride], s.base + start
}

// Send sends a message. It copies data, which can be reused at once, and waits, until ctx is done, while
// SendDepth requests are outstanding: so a peer that does not receive holds the sender up. nil means that the
// message is queued: Flush waits until the peer has it. If the connection has ended, the error is the reason,
// whichever request it was.
func (c *Conn) Send(ctx context.Context, data []byte) error {
	if c == nil {
		return fmt.Errorf("send: %w", errNil)
	}
	one := [1]Message{{Data: data}}
	_, err := c.SendBatch(ctx, one[:])
	return err
}

// SendBatch sends messages as Send does, and gives the number that were queued.
func (c *Conn) SendBatch(ctx context.Context, messages []Message) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("send: %w", errNil)
	}
	n, _, err := post(ctx, c, messages, (*Conn).putMessage, true)
	return n, err
}

// post queues requests of a kind, and gives how many, and the number of the last.
func post[T any](
	ctx context.Context, c *Conn, list []T, put func(*Conn, int, *T) error, wait bool,
) (sent int, last uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, c.explain(err)
	}
	now := time.Since(c.begin)
	for sent < len(list) {
		n, number, err := postSome(c, list[sent:], put, now)
		if sent += n; n > 0 {
			last = number
		}
		switch {
		case err != nil:
		case sent == len(list):
		case wait:
			err = c.send.awaitSends(ctx, c.send.hasRoom)
		default:
			return sent, last, errNoRoom
		}
		if err != nil {
			return sent, last, c.explain(err)
		}
	}
	return sent, last, nil
}

// errNoRoom is made once: a program that posts as fast as it can gets it often.
var errNoRoom = fmt.Errorf("post: %w: SendDepth requests are outstanding; try again, or use Post, which waits",
	verbs.ErrQueueFull)

// postSome queues requests as far as there is room.
func postSome[T any](
	c *Conn, list []T, put func(*Conn, int, *T) error, now time.Duration,
) (n int, last uint64, err error) {
	s := &c.send
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mustLook(now) {
		if err := s.tryReap(now); err != nil {
			return 0, 0, err
		}
	}
	if err := s.over(); err != nil {
		return 0, 0, err
	}
	room := min(len(list), batch, int(s.depth-(s.posted-s.reaped)))
	for n < room && err == nil {
		if err = put(c, n, &list[n]); err == nil {
			n++
		}
	}
	n, failed := c.submit(n)
	if failed != nil {
		err = failed
	}
	return n, s.posted, err
}

// mustLook says whether it is time to look for completions, while requests are outstanding.
func (s *sender) mustLook(now time.Duration) bool {
	switch out := s.posted - s.reaped; out {
	case 0:
		return false
	case s.depth:
		return true
	}
	return s.posted-s.looked >= s.every || now-s.lookedAt > lookPause
}

// over is why nothing can be posted any more; nil if it can.
func (s *sender) over() error {
	if s.life.Err() != nil {
		return ErrClosed
	}
	return s.ending.cause()
}

// submit posts n requests, of which the last is signaled, and gives how many were taken.
func (c *Conn) submit(n int) (int, error) {
	s := &c.send
	if n == 0 {
		return 0, nil
	}
	last := &s.requests[n-1]
	last.Flags |= verbs.SendSignaled
	s.signaled = last.ID
	err := c.qp.PostSend(s.requests[:n])
	if err != nil {
		var bad *verbs.BadWRError
		if n = 0; errors.As(err, &bad) {
			n = bad.Index
		}
	}
	s.posted += uint64(n)
	return n, err
}

// request begins the n-th request of a list, and gives the place of its slot.
func (s *sender) request(n int, opcode verbs.Opcode, length int) (wr *verbs.SendWR, at *slot, place int) {
	number := s.posted + uint64(n) + 1
	place = int(number % s.depth)
	wr, at = &s.requests[n], &s.slots[place]
	wr.ID, wr.Opcode, wr.Flags = number, opcode, 0
	if number-s.signaled >= s.every {
		wr.Flags, s.signaled = verbs.SendSignaled, number
	}
	at.opcode, at.length, at.remote, at.into = opcode, length, Remote{}, nil
	return wr, at, place
}

// copyIn has a request send a copy of data.
func (s *sender) copyIn(n, place int, data []byte) {
	memory, offset := s.buffer(place)
	copy(memory, data)
	s.sges[n] = s.mr.SGE(offset, len(data))
}

// fits refuses what is too long for a buffer.
func (c *Conn) fits(length int) error {
	if length > c.options.MaxMessage {
		return fmt.Errorf("%w: %d bytes, and Options.MaxMessage is %d; Post sends from a Region",
			ErrTooLong, length, c.options.MaxMessage)
	}
	return nil
}

func (c *Conn) putMessage(n int, m *Message) error {
	if err := c.fits(len(m.Data)); err != nil {
		return err
	}
	opcode := verbs.WRSend
	if m.HasImm {
		opcode = verbs.WRSendWithImm
	}
	wr, _, place := c.send.request(n, opcode, len(m.Data))
	wr.ImmData = m.Imm
	c.send.copyIn(n, place, m.Data)
	return nil
}
