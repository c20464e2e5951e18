// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"math"
	"os"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// asyncEvents is a socket pair by which a session sends events to its program, which has the other end.
type asyncEvents struct {
	queue  *hca.EventQueue
	end    *os.File
	cancel context.CancelFunc
	over   chan struct{} // closed when the sending has ended
}

// opensAsyncEvents returns the handler of a command that hands over the program's end of a socket, for the events of a
// range.
func opensAsyncEvents[Q any](command proto.Command[Q, proto.None], rangeOf func(Q) proto.EventRange) handler {
	return handler{command.Number, func(c *connection, m proto.Message) error {
		request, err := command.DecodeRequest(m.Body)
		if err != nil {
			return err
		}
		end, err := c.startAsyncEvents(rangeOf(request))
		if err != nil {
			return c.fail(m, err)
		}
		defer unix.Close(end)
		return c.reply(command.Untyped, m.ID, &proto.None{}, end)
	}}
}

func givenRange(r proto.EventRange) proto.EventRange { return r }

// everyEvent returns the range of all events, which older clients request.
func everyEvent(proto.None) proto.EventRange { return proto.EventRange{First: 1, Last: math.MaxUint64} }

// startAsyncEvents starts a goroutine that sends the events of a range, and returns the program's end.
func (c *connection) startAsyncEvents(r proto.EventRange) (end int, err error) {
	if err := c.place.Quota().TakeDescriptors(1); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			c.place.Quota().GiveDescriptors(1)
		}
	}()
	queue, err := c.session.OpenEvents(r.First, r.Last)
	if err != nil {
		return 0, err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		queue.Close()
		return 0, fmt.Errorf("%w: a socket for events: %w", verbs.ErrHost, err)
	}
	_ = unix.Shutdown(ends[0], unix.SHUT_RD) // data that the program would send there could make a close wait
	ctx, cancel := context.WithCancel(context.Background())
	a := &asyncEvents{queue, os.NewFile(uintptr(ends[0]), "events"), cancel, make(chan struct{})}
	c.asyncEvents[r] = a
	c.background.Go(func() { a.send(ctx) })
	return ends[1], nil
}

// send sends events until the session has ended, which ends the stream. It waits while the socket is full.
// Meanwhile the session keeps events, and drops those of objects that are destroyed. So no event is
// sent after the reply to the command that has destroyed its object.
func (a *asyncEvents) send(ctx context.Context) {
	defer close(a.over)
	defer a.end.Close()
	socket, err := a.end.SyscallConn()
	if err != nil {
		return
	}
	for ended := error(nil); ended == nil && err == nil; {
		err = socket.Write(func(fd uintptr) (done bool) {
			full := false
			ended = a.queue.Pass(ctx, func(event provider.EventReport) bool {
				err := error(unix.EINTR)
				for err == unix.EINTR {
					_, err = unix.Write(int(fd), proto.EncodeAsyncEvent(event))
				}
				full = err == unix.EAGAIN // if the program has closed its end, the error is another one, and the event is lost
				return !full
			})
			return !full || ended != nil
		})
	}
}

// close ends the sending.
func (a *asyncEvents) close() {
	a.cancel()
	_ = a.end.Close()
	<-a.over
	a.queue.Close()
}

// closeAsyncEvents carries out CloseAsyncEvents: the program needs a descriptor no longer.
func closeAsyncEvents(c *connection, m proto.Message) error {
	r, err := proto.CloseAsyncEvents.DecodeRequest(m.Body)
	if err != nil {
		return err
	}
	a := c.asyncEvents[r]
	if a == nil {
		return c.fail(m, fmt.Errorf("%w: no descriptor has the events of objects from %#x to %#x", verbs.ErrNotFound, r.First, r.Last))
	}
	c.closeAsyncEvents(r, a)
	return c.reply(proto.CloseAsyncEvents.Untyped, m.ID, &proto.None{})
}

func (c *connection) closeAsyncEvents(r proto.EventRange, a *asyncEvents) {
	a.close()
	delete(c.asyncEvents, r)
	c.place.Quota().GiveDescriptors(1)
}
