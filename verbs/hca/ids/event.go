// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/ib"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// Channel is the card's end of an event channel of ids, under its session's lock. The program has the other end of its
// socket pair. Events are queued here; a byte in the socket makes the channel readable.
type Channel struct {
	file    *os.File // nil after shut
	fd      int
	peer    int // a duplicate of the program's end, for taking the byte back
	ids     int
	ready   chan struct{}     // of capacity 1; see provider.CreateEventChannelGrant
	waiting list.List         // of *idEvent
	told    bool              // a byte was written that the program has not been told to read
	taking  chan struct{}     // closed when settle's last read has returned; nil before the first
	block   func(call func()) // SessionConfig.Block
}

// channels holds the event channels of a session.
type channels struct {
	handles.Table[Channel]
	session *Session
}

// idEvent is a queued event.
type idEvent struct {
	provider.CMEvent
	id    *ID
	join  *idJoin       // of a join, else nil
	place *list.Element // in its channel
	own   *list.Element // in its id
}

// create carries out provider.CreateEventChannel.
func (t *channels) create() (grant provider.CreateEventChannelGrant, err error) {
	if err := t.session.enter(); err != nil {
		return grant, err
	}
	defer t.session.mu.Unlock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return grant, network.HostError(fmt.Errorf("sockets of an event channel: %w", err))
	}
	_ = unix.Shutdown(ends[1], unix.SHUT_RD) // data that the program sends there could block a close
	c := &Channel{file: os.NewFile(uintptr(ends[1]), "event channel"), fd: ends[1], block: t.session.config.Block, ready: make(chan struct{}, 1)}
	grant.Events, grant.Ready = os.NewFile(uintptr(ends[0]), "event channel"), c.ready
	if c.peer, err = unix.FcntlInt(uintptr(ends[0]), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return provider.CreateEventChannelGrant{}, errors.Join(network.HostError(fmt.Errorf("sockets of an event channel: %w", err)), c.file.Close(), grant.Events.Close())
	}
	if grant.Channel, err = t.Add(c); err != nil {
		c.shut()
		return provider.CreateEventChannelGrant{}, errors.Join(err, grant.Events.Close())
	}
	return grant, nil
}

// destroy carries out provider.DestroyEventChannel.
func (t *channels) destroy(r provider.DestroyEventChannelRequest) error {
	if err := t.session.enterToFree(); err != nil {
		return err
	}
	defer t.session.mu.Unlock()
	c, err := t.Get(r.Channel)
	if err != nil {
		return err
	}
	if c.ids > 0 {
		return fmt.Errorf("%w: ids whose events come through the channel: %d; destroy or migrate them first", verbs.ErrBusy, c.ids)
	}
	t.Remove(r.Channel)
	c.shut()
	return nil
}

// next carries out provider.GetCMEvent. After a failure of the card it still returns the remaining events.
func (t *channels) next(r provider.GetCMEventRequest) (grant provider.GetCMEventGrant, err error) {
	if err := t.session.enterToFree(); err != nil {
		return grant, err
	}
	defer t.session.mu.Unlock()
	c, err := t.Get(r.Channel)
	if err != nil {
		return grant, err
	}
	e := c.next()
	if ended := t.session.program.Err(); e == nil && ended != nil {
		return grant, ended
	}
	if e != nil {
		grant.Found, grant.Event = true, e.CMEvent
	}
	if c.waiting.Len() == 0 && c.told {
		c.told, grant.Drained = false, true
	}
	return grant, nil
}

// next dequeues the oldest event, or nil.
func (c *Channel) next() *idEvent {
	for first := c.waiting.Front(); first != nil; first = c.waiting.Front() {
		e := first.Value.(*idEvent)
		e.id.forget(e)
		if e.Type != ib.CMEventConnectRequest || e.id.takeRequest(&e.CMEvent) {
			return e
		}
	}
	return nil
}

// put appends an event.
func (c *Channel) put(e *idEvent) {
	e.place = c.waiting.PushBack(e)
	if !c.told && c.file != nil {
		c.told = true
		_, _ = unix.Write(c.fd, []byte{1}) // there is room, unless the program leaves bytes unread
		select {
		case c.ready <- struct{}{}:
		default:
		}
	}
}

func (c *Channel) remove(e *idEvent) { c.waiting.Remove(e.place) }

// settle takes the byte back if its events were removed before the program got one: a program that polls and then gets
// an event would block. The kernel lets only one reader of a socket copy at a time, whatever the flags of the others.
// So a program that reads without a command, into memory that is not mapped in, makes the read block: the read runs
// without the session's lock, and a command waits for it at its end (awaitTaken). Such a program may keep the byte.
func (c *Channel) settle() {
	if c.waiting.Len() > 0 || !c.told || c.file == nil {
		return
	}
	c.told = false
	if c.isTaking() {
		return
	}
	end, err := unix.FcntlInt(uintptr(c.peer), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return
	}
	taken := make(chan struct{})
	c.taking = taken
	c.block(func() {
		takeBack(end)
		close(taken)
	})
}

// takeBack reads a byte from the program's end, unless the program has already read it.
func takeBack(end int) {
	_, _, _ = unix.Recvfrom(end, make([]byte, 1), unix.MSG_DONTWAIT)
	_ = unix.Close(end)
}

func (c *Channel) isTaking() bool {
	if c.taking == nil {
		return false
	}
	select {
	case <-c.taking:
		return false
	default:
		return true
	}
}

// takeWait is the maximum time that a command waits for settle's read. Only a program that reads without a command
// makes that long.
const takeWait = time.Second

// awaitTaken waits until settle's last read has returned, for up to takeWait. The caller does not hold mu, the
// session's lock.
func (c *Channel) awaitTaken(mu *sync.Mutex) {
	mu.Lock()
	taken := c.taking
	mu.Unlock()
	if taken == nil {
		return
	}
	select {
	case <-taken:
	case <-time.After(takeWait):
	}
}

// shut ends the connection: the program reads the end of the stream.
func (c *Channel) shut() {
	if c.file != nil {
		_ = errors.Join(c.file.Close(), unix.Close(c.peer))
		close(c.ready)
		c.file = nil
	}
}

// maxEvents is the maximum number of queued events of an id, apart from those of its joins. The program must read some
// before it starts an operation that causes more.
const maxEvents = 64

// room returns an error if too many events are queued to start an operation that ends with an event.
func (i *ID) room() error {
	if n := i.events.Len(); n >= maxEvents+len(i.joins) {
		return fmt.Errorf("%w: %d events of the id wait, the maximum; get some", verbs.ErrLimit, n)
	}
	return nil
}

// put reports an event of an id.
func (i *ID) put(e *idEvent) {
	e.id, e.ID = i, i.handle
	e.own = i.events.PushBack(e)
	if e.Type == ib.CMEventConnectRequest {
		i.asked++
	}
	i.channel.put(e)
}

// forget removes a queued event of the id.
func (i *ID) forget(e *idEvent) {
	i.events.Remove(e.own)
	if e.Type == ib.CMEventConnectRequest {
		i.asked--
	}
	i.channel.remove(e)
}

// showRequests keeps as many events queued as requests wait: it adds one for a new request, and removes one for a
// withdrawn request. So the listener's backlog limits them.
func (i *ID) showRequests() {
	if i.listener == nil {
		return
	}
	m := i.session.manager
	m.mu.Lock()
	waiting := i.listener.Waiting()
	m.mu.Unlock()
	for i.asked < waiting { // put and forget count
		i.put(&idEvent{CMEvent: provider.CMEvent{Type: ib.CMEventConnectRequest}})
	}
	for at := i.events.Back(); i.asked > waiting; {
		e := at.Value.(*idEvent)
		if at = at.Prev(); e.Type == ib.CMEventConnectRequest {
			i.forget(e)
		}
	}
	i.channel.settle()
}

// statusOf returns the status of an event for an error: a negative errno.
func statusOf(err error) int32 {
	var errno unix.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		errno = unix.ETIMEDOUT
	case !errors.As(err, &errno):
		errno = unix.EIO
	}
	return -int32(errno)
}

// RemoveDevice reports to the ids that are bound to the card that it was removed. Ids at all addresses are on no card,
// as in the kernel.
func (s *Session) RemoveDevice() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.ids.All() {
		if i.onDevice() {
			i.put(&idEvent{CMEvent: provider.CMEvent{Type: ib.CMEventDeviceRemoval}})
		}
	}
}
