// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/admin"
	"github.com/roced/roced/verbs/server/memory"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

// connection is a client. One goroutine reads its socket and carries out its commands; commands that may wait have
// goroutines of their own.
type connection struct {
	server *Server
	socket *net.UnixConn
	conn   *proto.Conn
	log    *slog.Logger
	since  time.Time
	peer   *peer.Peer
	place  *peer.Place
	client *admin.Client

	// Of the goroutine that reads.
	greeted     bool
	view        *admin.View
	fileSocket  *peer.FileSocket
	asyncEvents map[proto.EventRange]*asyncEvents

	// Set once, by the goroutine that reads, under mu.
	session *hca.Session
	memory  *memory.Session
	signals *signals

	mu      sync.Mutex
	closing bool // the session is being closed by the connection
	lost    bool // it was closed with its card

	out        writer
	waiting    waitingCommands
	background sync.WaitGroup // commands that wait, and watch
	hungUp     atomic.Bool
}

// helloTimeout is how long a client may take until it has opened a device.
const helloTimeout = 10 * time.Second

func newConnection(s *Server, socket *net.UnixConn, p *peer.Peer, place *peer.Place) *connection {
	now := time.Now()
	c := &connection{
		server: s, socket: socket, conn: proto.NewConn(socket, false), log: p.Logger(s.log), since: now, peer: p, place: place,
		client: admin.NewClient(p, now), fileSocket: peer.NewFileSocket(place), asyncEvents: map[proto.EventRange]*asyncEvents{},
	}
	c.view = s.admin.View(c.client)
	c.out = writer{socket: socket, conn: c.conn, inFlight: peer.NewInFlight(socket, place)}
	return c
}

// run serves the client until its connection ends.
func (c *connection) run() {
	err := c.socket.SetReadDeadline(c.since.Add(helloTimeout))
	for err == nil {
		var m proto.Message
		if m, _, err = c.conn.Receive(); err == nil && !c.hungUp.Load() {
			err = c.handleContained(m)
		}
	}
	if isHangUp(err) {
		err = c.out.failure()
	}
	if err != nil && !isHangUp(err) {
		c.warn("connection of a client ended", err)
	}
	c.end()
}

// isHangUp reports whether an error is that of a connection whose client closes it, or is killed.
func isHangUp(err error) bool {
	for _, usual := range []error{io.EOF, net.ErrClosed, unix.EPIPE, unix.ECONNRESET} {
		if errors.Is(err, usual) {
			return true
		}
	}
	return false
}

// warn logs an error that the client has caused.
func (c *connection) warn(what string, err error) {
	c.server.limited.Warn(c.log, c.peer.Holder(), what, err)
}

// hangUp ends the connection from the server's side. It does not block: the socket is closed by end.
func (c *connection) hangUp() {
	c.hungUp.Store(true)
	if raw, err := c.socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	}
}

// handleContained is handle. A panic in it costs the client its session: the request fails, and
// the program gets DEVICE_FATAL. Without a session it costs the connection.
func (c *connection) handleContained(m proto.Message) (err error) {
	f := fault.Contain(func() { err = c.handle(m) })
	if f == nil {
		return err
	}
	return c.faulted(m, f)
}

// faulted answers a request that has panicked.
func (c *connection) faulted(m proto.Message, f *fault.Fault) error {
	session, _ := c.opened()
	if session == nil {
		c.server.limited.Warn(c.log.With("stack", string(f.Stack)), c.peer.Holder(), "a connection is closed", f)
		return f
	}
	session.Faulted(f)
	return c.fail(m, fmt.Errorf("%w: %w", verbs.ErrDeviceFatal, f))
}

// handle carries out a message. An error ends the connection.
func (c *connection) handle(m proto.Message) error {
	switch m.Kind {
	case proto.Request:
		return c.request(m)
	case proto.Cancel:
		reason, err := proto.DecodeCancel(m.Body)
		if err == nil {
			c.waiting.cancel(m.ID, reason)
		}
		return err
	}
	return fmt.Errorf("%w: kind %d from a client", proto.ErrMalformed, m.Kind)
}

// send sends a packet. If that fails, the connection ends.
func (c *connection) send(packet []byte, descriptors ...int) error {
	err := c.out.send(packet, descriptors...)
	if err != nil {
		c.hangUp()
	}
	return err
}

// opened returns the session and its memory, nil before OpenDevice. Commands that need no session run beside it.
func (c *connection) opened() (*hca.Session, *memory.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.memory
}

// fail answers a request with an error. If the session is closed, though not by the connection, there is
// no answer: then its card has been closed, and the connection ends.
func (c *connection) fail(m proto.Message, cause error) error {
	if errors.Is(cause, verbs.ErrClosed) && c.lose() {
		c.hangUp()
		return net.ErrClosed
	}
	return c.send(proto.EncodeFailure(proto.Failure, m.Code, m.ID, cause))
}

// reply answers a request with a grant.
func (c *connection) reply(command *proto.Untyped, id uint32, grant any, descriptors ...int) error {
	var arena proto.Memory
	if _, memory := c.opened(); memory != nil {
		arena = memory.Arena()
	}
	packet, err := command.EncodeGrant(id, grant, arena)
	if err != nil {
		return err
	}
	return c.send(packet, descriptors...)
}

// answer sends the grant of a command, or the error if it has failed.
func (c *connection) answer(command *proto.Untyped, m proto.Message, grant any, failed error) error {
	if failed != nil {
		return c.fail(m, failed)
	}
	return c.reply(command, m.ID, grant)
}

// watch notifies the client when its session ends while the connection does not: the card has failed, and
// can still be queried, or it was closed.
func (c *connection) watch(session *hca.Session) {
	<-session.Done()
	err := session.Err()
	if errors.Is(session.Failure(), hca.ErrPagesGone) { // err is another one if the program has ended at once
		c.memory.NotePagesGone()
	}
	if !errors.Is(err, verbs.ErrClosed) {
		_ = c.send(proto.EncodeFailure(proto.Ended, 0, 0, err))
		if memory.IsArenaHole(session.Failure()) {
			c.hangUp()
		}
		return
	}
	if c.lose() {
		c.hangUp()
	}
}

// lose notes that the session was closed with its card. It reports false if the connection has closed it, or has
// no session.
func (c *connection) lose() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil || c.closing {
		return false
	}
	c.lost = true
	return true
}
