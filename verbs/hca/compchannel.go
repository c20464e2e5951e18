//go:build linux

package hca

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// compChannel is the card's end of a completion channel: a socket pair. The program has only the other end,
// so that neither side can change the other's flags. It is no pipe: when a program in another process reads
// from a pipe into memory that is not there yet, it holds up the writer.
//
// The engine writes records itself, since a write that does not block takes no longer than to wake
// somebody who writes. What does not fit is counted at the CQ, and deliver writes it when the program
// has read. So nothing is lost, and the engine never waits.
type compChannel struct {
	file  *os.File
	fd    int           // file's; -1 after shut. It changes between rounds
	owing chan struct{} // of capacity 1: some CQs are owed records
	ready chan struct{} // of capacity 1; see provider.CreateCompChannelGrant

	mu  sync.Mutex
	cqs []*cq
}

// createCompChannel carries out provider.CreateCompChannel.
func createCompChannel(s *Session) (grant provider.CreateCompChannelGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return grant, network.HostError(fmt.Errorf("sockets of a completion channel: %w", err))
	}
	_ = unix.Shutdown(ends[1], unix.SHUT_RD) // what the program would send there could make a close wait
	c := &compChannel{file: os.NewFile(uintptr(ends[1]), "completion channel"), fd: ends[1], owing: make(chan struct{}, 1), ready: make(chan struct{}, 1)}
	grant.Events, grant.Ready = os.NewFile(uintptr(ends[0]), "completion channel"), c.ready
	if grant.Channel, err = s.channels.Add(c); err != nil {
		return provider.CreateCompChannelGrant{}, errors.Join(err, c.file.Close(), grant.Events.Close())
	}
	go c.deliver()
	return grant, nil
}

// destroyCompChannel carries out provider.DestroyCompChannel.
func destroyCompChannel(s *Session, r provider.DestroyCompChannelRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	c, err := s.channels.Get(r.Channel)
	if err != nil {
		return err
	}
	if n := len(c.all()); n > 0 {
		return fmt.Errorf("%w: CQs that notify to the completion channel: %d; close them first", verbs.ErrBusy, n)
	}
	s.channels.Remove(r.Channel)
	c.shut(s)
	return nil
}

// shut closes the card's end of the channel. The program reads the events in it, then the end of the stream. The caller holds card.mu.
func (c *compChannel) shut(s *Session) {
	if c.fd < 0 {
		return
	}
	s.entry.Engine().Do(func() { c.fd = -1 })
	close(c.owing)
	_ = c.file.Close()
	signal(c.ready)
}

// signal has a receiver of a channel of capacity 1 wake, now or when it waits next.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

func (c *compChannel) add(q *cq) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cqs = append(c.cqs, q)
}

func (c *compChannel) remove(q *cq) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cqs = slices.DeleteFunc(c.cqs, func(one *cq) bool { return one == q })
}

func (c *compChannel) all() []*cq {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.cqs)
}

// notify sends the record of a CQ. The engine calls it under its lease.
func (c *compChannel) notify(q *cq) {
	if c.fd < 0 || q.owed.Load() == 0 && c.write(q) {
		return
	}
	q.owed.Add(1)
	signal(c.owing)
}

// write writes a record without waiting; false if there is no room. If the program has closed its end,
// nobody misses the record.
func (c *compChannel) write(q *cq) bool {
	record := q.record()
	_, err := unix.Write(c.fd, record[:])
	signal(c.ready)
	return !errors.Is(err, unix.EAGAIN)
}

// record is what the program reads for a notification.
func (q *cq) record() (record [8]byte) {
	binary.NativeEndian.PutUint64(record[:], q.events.id)
	return record
}

// deliver writes the records that are owed, until the channel is shut.
func (c *compChannel) deliver() {
	for range c.owing {
		for _, q := range c.all() {
			record := q.record()
			for q.owed.Load() > 0 {
				if _, err := c.file.Write(record[:]); err != nil {
					return
				}
				signal(c.ready)
				q.owed.Add(-1)
			}
		}
	}
}
