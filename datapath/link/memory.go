package link

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

const (
	memFrames    = 128 // frames on the way in one direction
	memFrameSize = (wire.MaxHeaders + 4096 + wire.MaxTrailer + 63) &^ 63
)

// MemoryWire makes two links that are the ends of one wire in memory: what is
// flushed into one end arrives at the other, in order, and nothing is lost. A
// sender that is faster than the receiver finds no frame free.
func MemoryWire() (a, b Link, err error) {
	there, back := newMemoryLane(), newMemoryLane()
	left, err := newMemoryLink(there, back)
	if err != nil {
		return nil, nil, err
	}
	right, err := newMemoryLink(back, there)
	if err != nil {
		_ = unix.Close(left.wakeFD)
		return nil, nil, err
	}
	left.peer, right.peer = right, left
	left.open = new(atomic.Int32)
	left.open.Store(2)
	right.open = left.open
	return left, right, nil
}

// memoryLane is one direction: a ring of frames with one writer and one reader.
type memoryLane struct {
	frames  [memFrames][memFrameSize]byte
	lengths [memFrames]int
	sent    atomic.Uint64 // the writer's
	_       [120]byte
	taken   atomic.Uint64 // the reader's
}

func newMemoryLane() *memoryLane { return new(memoryLane) }

// memoryLink is one end of a MemoryWire.
type memoryLink struct {
	out, in *memoryLane
	peer    *memoryLink
	open    *atomic.Int32 // ends not closed yet: the descriptors go with the last

	committed uint64 // frames written to out, those not flushed yet among them
	freed     uint64 // out.taken when it was last looked at
	taken     uint64 // frames read from in
	borrowed  uint64
	asleep    atomic.Bool
	wakeFD    int
}

func newMemoryLink(out, in *memoryLane) (*memoryLink, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd for a wire in memory: %w", err)
	}
	return &memoryLink{out: out, in: in, wakeFD: fd}, nil
}

// Receive implements Link.
func (l *memoryLink) Receive(burst [][]byte) int {
	n := min(l.in.sent.Load()-l.taken, uint64(len(burst)))
	for i := range n {
		slot := (l.taken + i) % memFrames
		burst[i] = l.in.frames[slot][:l.in.lengths[slot]]
	}
	l.borrowed = n
	return int(n)
}

// Release implements Link.
func (l *memoryLink) Release() {
	l.taken += l.borrowed
	l.borrowed = 0
	l.in.taken.Store(l.taken)
}

// Reserve implements Link.
func (l *memoryLink) Reserve() []byte {
	if l.committed-l.freed == memFrames {
		if l.freed = l.out.taken.Load(); l.open.Load() < 2 {
			l.freed = l.committed // there is no other end any more
		}
		if l.committed-l.freed == memFrames {
			return nil
		}
	}
	return l.out.frames[l.committed%memFrames][:]
}

// Commit implements Link.
func (l *memoryLink) Commit(length int) {
	l.out.lengths[l.committed%memFrames] = length
	l.committed++
}

// Flush implements Link.
func (l *memoryLink) Flush() bool {
	l.out.sent.Store(l.committed)
	if l.peer.asleep.Load() {
		one := [8]byte{1}
		_, _ = unix.Write(l.peer.wakeFD, one[:])
	}
	return true
}

// TakeBack implements Link: nothing ever waits.
func (l *memoryLink) TakeBack() {}

// TakenBack implements Link.
func (l *memoryLink) TakenBack() int { return 0 }

// Refused implements Link.
func (l *memoryLink) Refused() int { return 0 }

// Descriptors implements Link.
func (l *memoryLink) Descriptors() []int { return []int{l.wakeFD} }

// SetAsleep implements Link.
func (l *memoryLink) SetAsleep(asleep bool) {
	l.asleep.Store(asleep)
	if !asleep {
		var count [8]byte
		_, _ = unix.Read(l.wakeFD, count[:])
	}
}

// Close implements Link.
func (l *memoryLink) Close() error {
	if l.open.Add(-1) > 0 {
		return nil // the other end may still ring
	}
	return errors.Join(unix.Close(l.wakeFD), unix.Close(l.peer.wakeFD))
}
