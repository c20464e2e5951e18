package ud

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
)

// sender is an endpoint's sending half. Messages are numbered from 1 on. A message's number gives its
// buffer, and is the ID of its request. Requests complete in order, so the completion of one frees
// the buffers of all before it too.
type sender struct {
	// reaping is a lock, taken before mu: only its holder polls the send CQ. So completions are
	// settled in order, and no goroutine sleeps for one that another has taken.
	reaping chan struct{}
	done    [batch]verbs.WC // under reaping

	mu       sync.Mutex
	base     int // of the buffers, in the endpoint's memory
	memory   []byte
	stride   int
	depth    uint64
	every    uint64 // n-th request that is signaled
	posted   uint64 // number of the last message
	signaled uint64 // number of the last signaled one
	reaped   uint64 // number of the last known to be done
	looked   uint64 // posted, when completions were last looked for
	lookedAt time.Duration
	failed   *SendError // the next call returns it; nothing is posted while there is one
	places   []Addr     // by buffer: where its message goes
	requests [batch]verbs.SendWR
	sges     [batch]verbs.SGE
	handles  handles
	gids     []verbs.GIDEntry // as look last found them
	sent     uint64
	lost     uint64
}

// lookPause is after how long completions are looked for though few sends are outstanding, and
// portPause the same for the port's addresses and MTU.
const (
	lookPause = time.Millisecond
	portPause = time.Second
)

func (s *sender) prepare(e *Endpoint, stride int) {
	depth := e.options.SendDepth
	s.reaping = make(chan struct{}, 1)
	s.base = len(e.mr.Bytes()) - depth*stride
	s.memory, s.stride = e.mr.Bytes()[s.base:], stride
	s.depth, s.every = uint64(depth), uint64(max(1, min(batch/2, depth/4)))
	s.places = make([]Addr, depth)
	s.handles.init(e.options.MaxHandles)
	for i := range s.requests {
		s.sges[i] = e.mr.SGE(0, 0)
		s.requests[i].SGList = s.sges[i : i+1]
	}
}

// need is what a call must do before it can send the next message.
type need uint8

const (
	needNothing need = iota
	needRoom         // wait: all buffers hold messages that have not left
	needHandle       // resolve the destination
	needMending      // restart the queue, which an earlier message has stopped
)

// Send sends a message. It copies data, which can be reused at once. It waits, until ctx is done, until the
// message is due by Options.Rate, for room if all buffers are in use, and for a new destination's hardware address; verbs.ErrUnreachable
// if nobody answers. A nil error means that the message is queued; like any datagram it may be lost.
// A *SendError is about earlier messages.
func (e *Endpoint) Send(ctx context.Context, to Addr, data []byte) error {
	if e == nil {
		return fmt.Errorf("send: %w", errNil)
	}
	one := [1]Message{{To: to, Data: data}}
	_, err := e.SendBatch(ctx, one[:])
	return err
}

// SendBatch sends messages, each to its To, as Send does, and gives the number that were queued. A
// received message whose To has been set to its From is a reply, as with Message.Reply.
func (e *Endpoint) SendBatch(ctx context.Context, messages []Message) (int, error) {
	if e == nil {
		return 0, fmt.Errorf("send batch: %w", errNil)
	}
	return e.sendAll(ctx, messages, true)
}

// TrySend is SendBatch, but does not wait for room, nor until a message is due by Options.Rate:
// verbs.ErrQueueFull if not all messages can be queued now.
func (e *Endpoint) TrySend(ctx context.Context, messages []Message) (int, error) {
	if e == nil {
		return 0, fmt.Errorf("try send: %w", errNil)
	}
	return e.sendAll(ctx, messages, false)
}

func (e *Endpoint) sendAll(ctx context.Context, messages []Message, wait bool) (sent int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, e.explain(err)
	}
	now := time.Since(e.begin)
	e.lookAgain(now)
	for allowed := 0; sent < len(messages); {
		if sent == allowed {
			n, err := e.pace.await(ctx, e.life, messages[sent:], wait)
			if err != nil {
				return sent, e.explain(err)
			}
			allowed += n
		}
		n, need, err := e.post(messages[sent:allowed], now)
		sent += n
		if err == nil && need != needNothing {
			err = e.meet(ctx, need, &messages[sent], wait)
		}
		if err != nil {
			return sent, e.explain(err)
		}
	}
	return sent, nil
}

// meet does what a message needs to be sent.
func (e *Endpoint) meet(ctx context.Context, need need, m *Message, wait bool) error {
	switch {
	case need == needHandle:
		return e.makeHandle(ctx, m)
	case need == needMending:
		return e.mend(ctx)
	case wait:
		return e.awaitSends(ctx, e.send.hasRoom, nil)
	}
	if err := e.reap(); err != nil {
		return err
	}
	if !e.send.hasRoom() {
		return fmt.Errorf("send: %w: all %d send buffers are in use; try again, or use SendBatch, which waits", verbs.ErrQueueFull, e.options.SendDepth)
	}
	return nil
}

// post queues messages, up to the first that needs something first.
func (e *Endpoint) post(messages []Message, now time.Duration) (n int, need need, err error) {
	s := &e.send
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.posted-s.looked >= s.every || now-s.lookedAt > lookPause && s.posted > s.reaped {
		s.looked, s.lookedAt = s.posted, now
		if err := e.tryReap(); err != nil {
			return 0, needNothing, err
		}
	}
	if s.failed != nil {
		return 0, needMending, nil
	}
	signaled := s.signaled
	room := int(s.depth - (s.posted - s.reaped))
	for n < min(len(messages), batch) && err == nil {
		if n == room {
			need = needRoom
			break
		}
		if need, err = e.put(n, &messages[n]); need != needNothing {
			break
		}
		if err == nil {
			n++
		}
	}
	if n, err = e.submit(n, err); err != nil {
		// Numbers that were not posted are given again.
		s.signaled = signaled
		for i := range s.requests[:n] {
			if s.requests[i].Flags&verbs.SendSignaled != 0 {
				s.signaled = s.requests[i].ID
			}
		}
	}
	return n, need, err
}

// put makes the n-th request of a list.
func (e *Endpoint) put(n int, m *Message) (need, error) {
	to := e.destination(m)
	if to.isNoGroup() {
		return needNothing, &toError{*to, to.noGroup()}
	}
	if longest := e.longest.Load(); int64(len(m.Data)) > longest {
		return needNothing, &toError{*to, fmt.Errorf("%w: %d bytes, at most %d fit; see MaxMessage", ErrTooLong, len(m.Data), longest)}
	}
	s := &e.send
	h := s.handles.find(e.keyOf(m, to))
	if h == nil {
		return needHandle, nil
	}
	number := s.posted + uint64(n) + 1
	slot := number % s.depth
	start := int(slot) * s.stride
	copy(s.memory[start:start+s.stride], m.Data)
	s.sges[n].Addr, s.sges[n].Length = uint64(s.base+start), uint32(len(m.Data))
	s.places[slot] = *to
	h.last = number
	e.describe(&s.requests[n], m, to, number)
	s.requests[n].AH = h.ah
	return needNothing, nil
}

// describe fills in a request, except for its memory and its address handle.
func (e *Endpoint) describe(wr *verbs.SendWR, m *Message, to *Addr, number uint64) {
	s := &e.send
	wr.ID, wr.Flags = number, 0
	if number-s.signaled >= s.every {
		wr.Flags, s.signaled = verbs.SendSignaled, number
	}
	wr.RemoteQPN, wr.RemoteQKey = to.QPN, to.QKey
	if to.QKey == 0 {
		wr.RemoteQKey = e.qkey
	}
	wr.Opcode, wr.ImmData = verbs.WRSend, m.Imm
	if m.HasImm {
		wr.Opcode = verbs.WRSendWithImm
	}
}

// destination is where a message goes.
func (e *Endpoint) destination(m *Message) *Addr {
	if m.To.GID.IsZero() && m.To.QPN == 0 {
		return &e.peer
	}
	return &m.To
}

// submit posts n requests, and gives how many were taken; failed is why there were not more.
func (e *Endpoint) submit(n int, failed error) (int, error) {
	s := &e.send
	if n > 0 {
		if err := e.qp.PostSend(s.requests[:n]); err != nil {
			var bad *verbs.BadWRError
			if failed, n = err, 0; errors.As(err, &bad) {
				n = bad.Index
			}
		}
	}
	s.posted += uint64(n)
	s.sent += uint64(n)
	return n, failed
}
