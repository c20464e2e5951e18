package datapath

import (
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// inboxRoom is how many packets an inbox has room for. A few more may come, one for each engine.
const inboxRoom = 512

// inbox is what other engines have handed over to one.
type inbox struct {
	fd     int          // readable when a packet has come while the worker sleeps; -1 with wake
	wake   func()       // called instead; nil where the link has descriptors
	asleep atomic.Bool  // the worker does, or is about to
	waited atomic.Bool  // somebody has found it full
	count  atomic.Int32 // of came
	taken  []handed     // the engine's; its frames are valid until take finds nothing
	next   int          // of taken

	mu     sync.Mutex // guards the fields below
	came   []handed
	closed bool
}

// handed is a packet that is handed over, in memory of the inbox.
type handed struct {
	frame  []byte
	sender *QP  // that has sent it to this card; nil: it came from the link
	length int  // of the payload, if it has a sender
	copied bool // another engine counts the packet as received
}

func (in *inbox) open(wake func()) (err error) {
	in.fd, in.wake = -1, wake
	if wake != nil {
		return nil
	}
	if in.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("eventfd of a worker: %w", err)
	}
	return nil
}

func (in *inbox) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed {
		in.closed = true
		if in.fd >= 0 {
			_ = unix.Close(in.fd)
		}
	}
}

// put copies a packet in.
func (in *inbox) put(h handed) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := len(in.came)
	if n == cap(in.came) {
		in.came = append(in.came, handed{})
	}
	in.came = in.came[:n+1]
	to := &in.came[n]
	frame := append(to.frame[:0], h.frame...)
	*to = h
	to.frame = frame
	in.count.Store(int32(n + 1)) // then asleep: pairs with setAsleep, and then take
	if in.asleep.Load() && !in.closed {
		in.tell()
	}
}

// tell wakes the worker.
func (in *inbox) tell() {
	if in.wake != nil {
		in.wake()
		return
	}
	one := [8]byte{1}
	_, _ = unix.Write(in.fd, one[:])
}

// full says whether there is no room. If so, the owner calls all others when there is.
func (in *inbox) full() bool {
	if in.count.Load() < inboxRoom {
		return false
	}
	in.waited.Store(true) // then count: pairs with take, and then the swap in receiveHanded and sendRelayed
	return in.count.Load() >= inboxRoom
}

// left says that some of what was taken is not dealt with.
func (in *inbox) left() bool { return in.next < len(in.taken) }

// take is the next packet; nil if there is none.
func (in *inbox) take() *handed {
	if in.next == len(in.taken) {
		if in.next = 0; in.count.Load() == 0 {
			in.taken = in.taken[:0]
			return nil
		}
		in.mu.Lock()
		in.taken, in.came = in.came, in.taken[:0]
		in.count.Store(0) // pairs with full
		in.mu.Unlock()
	}
	in.next++
	return &in.taken[in.next-1]
}

// setAsleep pairs with put: asleep is stored, then count is loaded in the last round (take).
func (in *inbox) setAsleep(asleep bool) {
	in.asleep.Store(asleep)
	if !asleep && in.fd >= 0 {
		var count [8]byte
		_, _ = unix.Read(in.fd, count[:])
	}
}
