// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Room is the capacity of an inbox, in packets. It may be exceeded by one packet from each other engine.
const Room = 512

// inbox holds the packets that other engines have handed over to one engine.
type inbox struct {
	fd     int          // eventfd, readable when a packet arrives while the worker is asleep; -1 if wake is set
	wake   func()       // called instead of writing to fd; nil if the link has descriptors
	empty  func()       // calls the engines that found the inbox full
	asleep atomic.Bool  // the worker is asleep, or about to sleep
	waited atomic.Bool  // an engine has found the inbox full
	count  atomic.Int32 // length of came
	taken  []Packet     // packets that the owner processes; the frames are valid until the next call of peek
	next   int          // index in taken of the next packet

	mu     sync.Mutex // guards the fields below
	came   []Packet   // packets that have arrived since peek last took all
	closed bool
}

func (in *inbox) open(wake, empty func()) (err error) {
	in.fd, in.wake, in.empty = -1, wake, empty
	if wake != nil {
		return nil
	}
	if in.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("create the eventfd of a worker: %w", err)
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

// put copies a packet into the inbox.
func (in *inbox) put(p Packet) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := len(in.came)
	if n == cap(in.came) {
		in.came = append(in.came, Packet{})
	}
	in.came = in.came[:n+1]
	to := &in.came[n]
	frame := append(to.Frame[:0], p.Frame...)
	*to = p
	to.Frame = frame
	in.count.Store(int32(n + 1)) // before asleep is loaded: pairs with setAsleep followed by peek
	if in.asleep.Load() && !in.closed {
		in.notify()
	}
}

// notify wakes the worker.
func (in *inbox) notify() {
	if in.wake != nil {
		in.wake()
		return
	}
	one := [8]byte{1}
	_, _ = unix.Write(in.fd, one[:])
}

// full reports whether the inbox is full. If it is, the owner calls empty when there is room again.
func (in *inbox) full() bool {
	if in.count.Load() < Room {
		return false
	}
	in.waited.Store(true) // before count is loaded: pairs with peek, which stores count and then swaps waited
	return in.count.Load() >= Room
}

// left reports whether packets remain in taken.
func (in *inbox) left() bool { return in.next < len(in.taken) }

// peek returns the packet at next, or nil if the inbox is empty.
func (in *inbox) peek() *Packet {
	if in.next < len(in.taken) {
		return &in.taken[in.next]
	}
	if in.next = 0; in.count.Load() == 0 {
		in.taken = in.taken[:0]
		return nil
	}
	in.mu.Lock()
	in.taken, in.came = in.came, in.taken[:0]
	in.count.Store(0) // pairs with full
	in.mu.Unlock()
	if in.waited.Swap(false) {
		in.empty()
	}
	return &in.taken[0]
}

// setAsleep sets asleep. It pairs with put: asleep is stored before peek loads count in the worker's last round.
func (in *inbox) setAsleep(asleep bool) {
	in.asleep.Store(asleep)
	if !asleep && in.fd >= 0 {
		var count [8]byte
		_, _ = unix.Read(in.fd, count[:])
	}
}
