// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// compChannel is the card's end of a completion channel: a socket pair. The program has only the other end, so neither
// side can change the other's flags. A pipe does not work: when a program in another process reads from a pipe into
// memory that is not yet mapped in, the writer blocks.
//
// The engine writes records itself, since a non-blocking write costs no more than waking a writer goroutine. A record
// that does not fit is counted at the CQ, and deliver writes it when the program has read. So no record is lost, and
// the engine never blocks.
type compChannel struct {
	file  *os.File
	fd    int           // descriptor of file; -1 after shut. It changes between rounds only
	owing chan struct{} // of capacity 1: signals that some CQs are owed records
	ready chan struct{} // of capacity 1; see provider.CreateCompChannelGrant

	mu  sync.Mutex
	all []*notifier
}

// notifier writes the notifications of one CQ to its channel.
type notifier struct {
	channel *compChannel // nil: arming the CQ has no effect
	id      uint64       // the EventID of the CQ
	owed    atomic.Int64 // notifications for which the channel had no room
}

// channels holds the completion channels of a session.
type channels struct {
	handles.Table[compChannel]
	owner *owner
}

// create carries out provider.CreateCompChannel.
func (t *channels) create() (grant provider.CreateCompChannelGrant, err error) {
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return grant, network.HostError(fmt.Errorf("sockets of a completion channel: %w", err))
	}
	_ = unix.Shutdown(ends[1], unix.SHUT_RD) // data that the program sends there could block a close
	c := &compChannel{file: os.NewFile(uintptr(ends[1]), "completion channel"), fd: ends[1], owing: make(chan struct{}, 1), ready: make(chan struct{}, 1)}
	grant.Events, grant.Ready = os.NewFile(uintptr(ends[0]), "completion channel"), c.ready
	if grant.Channel, err = t.Add(c); err != nil {
		return provider.CreateCompChannelGrant{}, errors.Join(err, c.file.Close(), grant.Events.Close())
	}
	go c.deliver()
	return grant, nil
}

// destroy carries out provider.DestroyCompChannel.
func (t *channels) destroy(r provider.DestroyCompChannelRequest) error {
	if err := t.owner.enterToFree(); err != nil {
		return err
	}
	defer t.owner.leave()
	c, err := t.Get(r.Channel)
	if err != nil {
		return err
	}
	if n := len(c.notifiers()); n > 0 {
		return fmt.Errorf("%w: %d CQs use the completion channel; close them first", verbs.ErrBusy, n)
	}
	t.Remove(r.Channel)
	c.shut(t.owner.engine())
	return nil
}

// shut closes the card's end of the channel. The program can still read the events in it, then reads the end of the
// stream. The caller holds card.mu.
func (c *compChannel) shut(e *datapath.Engine) {
	if c.fd < 0 {
		return
	}
	e.Do(func() { c.fd = -1 })
	close(c.owing)
	_ = c.file.Close()
	signal(c.ready)
}

// signal wakes the receiver of a channel of capacity 1, now or at its next wait.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// add adds a CQ with an EventID to the channel; a nil channel has no CQs.
func (c *compChannel) add(id uint64) *notifier {
	n := &notifier{channel: c, id: id}
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, n)
	}
	return n
}

// remove removes the CQ from its channel.
func (n *notifier) remove() {
	c := n.channel
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = slices.DeleteFunc(c.all, func(one *notifier) bool { return one == n })
}

func (c *compChannel) notifiers() []*notifier {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

// notify sends a record of the CQ, or counts it as owed. The engine calls it under its lease.
func (n *notifier) notify() {
	c := n.channel
	if c == nil || c.fd < 0 || n.owed.Load() == 0 && c.write(n) {
		return
	}
	n.owed.Add(1)
	signal(c.owing)
}

// write writes a record without blocking, and returns false if there is no room. If the program has closed its end, the
// record is discarded.
func (c *compChannel) write(n *notifier) bool {
	record := n.record()
	_, err := unix.Write(c.fd, record[:])
	signal(c.ready)
	return !errors.Is(err, unix.EAGAIN)
}

// record returns the record that the program reads for a notification.
func (n *notifier) record() (record [8]byte) {
	binary.NativeEndian.PutUint64(record[:], n.id)
	return record
}

// deliver writes the owed records until the channel is shut.
func (c *compChannel) deliver() {
	for range c.owing {
		for _, n := range c.notifiers() {
			record := n.record()
			for n.owed.Load() > 0 {
				if _, err := c.file.Write(record[:]); err != nil {
					return
				}
				signal(c.ready)
				n.owed.Add(-1)
			}
		}
	}
}
