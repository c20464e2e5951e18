package server

import (
	"context"
	"fmt"
	"os"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// asyncEvents is a socket pair by which a session's events go to its program, which has the other end.
type asyncEvents struct {
	end    *os.File
	cancel context.CancelFunc
}

// openAsyncEvents hands the program's end of a socket for events over.
func openAsyncEvents(c *connection, m proto.Message) error {
	if _, err := proto.OpenAsyncEvents.DecodeRequest(m.Body); err != nil {
		return err
	}
	end, err := c.startAsyncEvents()
	if err != nil {
		return c.fail(m, err)
	}
	defer unix.Close(end)
	return reply(c, proto.OpenAsyncEvents, m.ID, &proto.None{}, end)
}

// startAsyncEvents has a goroutine send the session's events, and gives the program's end.
func (c *connection) startAsyncEvents() (end int, err error) {
	if c.asyncEvents != nil {
		return 0, fmt.Errorf("%w: the session has a descriptor for its events already", verbs.ErrBusy)
	}
	if err := c.account.quota.TakeDescriptors(1); err != nil {
		return 0, err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		c.account.quota.GiveDescriptors(1)
		return 0, fmt.Errorf("%w: a socket for events: %w", verbs.ErrHost, err)
	}
	_ = unix.Shutdown(ends[0], unix.SHUT_RD) // what the program would send there could make a close wait
	ctx, cancel := context.WithCancel(context.Background())
	c.asyncEvents = &asyncEvents{os.NewFile(uintptr(ends[0]), "events"), cancel}
	c.background.Go(func() { c.asyncEvents.send(ctx, c.session) })
	return ends[1], nil
}

// send sends events until the session has ended, of which the program reads the end. It waits while the socket is full,
// and what comes meanwhile is kept by the session, which drops what is of objects that are destroyed. So no event is
// sent after the answer to who destroyed its object.
func (a *asyncEvents) send(ctx context.Context, session *hca.Session) {
	defer a.end.Close()
	socket, err := a.end.SyscallConn()
	if err != nil {
		return
	}
	for ended := error(nil); ended == nil && err == nil; {
		err = socket.Write(func(fd uintptr) (done bool) {
			full := false
			ended = session.PassAsyncEvent(ctx, func(event provider.EventReport) bool {
				err := error(unix.EINTR)
				for err == unix.EINTR {
					_, err = unix.Write(int(fd), proto.EncodeAsyncEvent(event))
				}
				full = err == unix.EAGAIN // where nobody reads it fails otherwise, and the event is lost
				return !full
			})
			return !full || ended != nil
		})
	}
}

// closeAsyncEvents ends the sending.
func (c *connection) closeAsyncEvents() {
	if c.asyncEvents != nil {
		c.asyncEvents.cancel()
		_ = c.asyncEvents.end.Close()
		c.account.quota.GiveDescriptors(1)
	}
}

// getAsyncEvent waits for an event, unless events go to a descriptor.
func getAsyncEvent(c *connection, m proto.Message) error {
	if c.asyncEvents != nil {
		return c.fail(m, fmt.Errorf("%w: the session's events go to the descriptor that open_async_events gave", verbs.ErrBusy))
	}
	return waitForEvent.run(c, m)
}

var waitForEvent = waits(proto.GetAsyncEvent, func(s *hca.Session, ctx context.Context, _ proto.None) (provider.EventReport, error) {
	return s.GetAsyncEvent(ctx)
})
