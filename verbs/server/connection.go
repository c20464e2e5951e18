package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// connection is a client.
type connection struct {
	server  *Server
	number  uint64 // counts connections; from 1
	slot    uint32 // of Server.slots
	socket  *net.UnixConn
	conn    *proto.Conn
	log     *slog.Logger
	since   time.Time
	peer    peer
	account *account

	// Of the goroutine that reads.
	greeted    bool
	monitor    *monitor // of who wants to hear what happens; else nil
	stream     *os.File // of a capture; else nil
	fileSocket fileSocket
	file       *processFile // of who shares its own memory; else nil
	caller     *Caller      // where it was asked for; else nil

	asyncEvents map[proto.EventRange]*asyncEvents
	passed      map[*processFile]bool // of which it has registered parts, also when they are gone; under processFiles.mu

	// Set once, by the goroutine that reads, under mu.
	session *hca.Session
	device  string
	command string // the process's name
	arena   *arena
	signals *signals

	mu         sync.Mutex
	closing    bool                // the session is being closed by the connection
	lost       bool                // it was closed with its card
	waiting    map[uint32]*waiting // commands that wait, by their ids
	sendMu     sync.Mutex          // one packet at a time
	renewed    time.Time           // when the deadline for writing was last set
	unsent     error               // why a packet could not be sent; under sendMu
	background sync.WaitGroup
	over       chan struct{} // closed when it ends
	hungUp     atomic.Bool
	place      *place
	inFlight   inFlight
}

const (
	// helloTimeout is how long a client may take until it has opened a device.
	helloTimeout = 10 * time.Second
	// writeTimeout is how long a client may leave a reply unread when the socket is full.
	writeTimeout = 30 * time.Second
	// maxWaiting is how many commands of a client may wait at once.
	maxWaiting = 64
)

func newConnection(s *Server, socket *net.UnixConn, p peer, a *account) *connection {
	c := &connection{
		server: s, socket: socket, conn: proto.NewConn(socket, false), log: p.log(s.log), peer: p, account: a,
		since: time.Now(), waiting: map[uint32]*waiting{}, asyncEvents: map[proto.EventRange]*asyncEvents{}, passed: map[*processFile]bool{},
		over: make(chan struct{}), place: newPlace(s, p.holder()),
	}
	c.fileSocket.place, c.fileSocket.account = c.place, a
	c.inFlight.socket, c.inFlight.account = socket, a
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
	if hasDied(err) {
		err = c.whyUnsent()
	}
	if err != nil && !hasDied(err) {
		c.server.complain(c.log, c.peer.party(), "connection of a client ended", err)
	}
	c.end()
}

// hangUp ends the connection from the server's side. It does not block: the socket is closed by end.
func (c *connection) hangUp() {
	c.hungUp.Store(true)
	if raw, err := c.socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	}
}

// end frees all that the connection has. Nothing else does.
func (c *connection) end() {
	c.hangUp()
	close(c.over)
	c.fileSocket.close()
	for r, a := range c.asyncEvents {
		c.endAsyncEvents(r, a)
	}
	if c.stream != nil {
		_ = c.stream.Close() // who writes there stops
	}
	c.mu.Lock()
	session := c.session
	c.closing = true
	for _, w := range c.waiting {
		w.cancel(context.Canceled)
	}
	c.mu.Unlock()
	if session != nil {
		var err error
		if f := fault.Contain(func() { err = session.Close() }); f != nil {
			session.Faulted(f)
			err = f
		}
		if err != nil {
			c.log.Warn("not all that a client had could be undone", "error", err)
		}
	}
	if c.signals != nil {
		c.signals.close()
	}
	c.background.Wait()
	c.caller.close()
	if c.monitor != nil {
		c.server.monitors.leave(c.monitor)
	}
	if session != nil {
		c.tell(proto.ClientClosed)
	}
	c.server.arenas.leave(c)
	c.place.block(c.giveBack)
	c.inFlight.await(c.server.hurry)
	c.place.block(func() { _ = c.socket.Close() })
	c.place.release()
	select {
	case <-c.place.left:
	case <-c.server.hurry:
		c.log.Warn("a client blocks the release of its memory, or of files that it has passed; these are left to the kernel")
	}
}

// giveBack releases what is charged to the user. The client can make it block; see arena.close.
func (c *connection) giveBack() {
	if c.file != nil {
		c.server.files.leave(c.file)
	}
	if c.arena != nil {
		c.arena.close(!c.lost && !c.server.isClosed())
	}
}

// handle carries out a message. An error ends the connection.
func (c *connection) handle(m proto.Message) error {
	switch m.Kind {
	case proto.Request:
		return c.request(m)
	case proto.Cancel:
		reason, err := proto.DecodeCancel(m.Body)
		if err == nil {
			c.cancel(m.ID, reason)
		}
		return err
	}
	return fmt.Errorf("%w: kind %d from a client", proto.ErrMalformed, m.Kind)
}

// send sends a packet. A client that does not read makes it wait, and ends the connection in the end.
func (c *connection) send(packet []byte, descriptors ...int) error {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	if now := time.Now(); now.Sub(c.renewed) > writeTimeout/8 { // not for each packet
		_ = c.socket.SetWriteDeadline(now.Add(writeTimeout))
		c.renewed = now
	}
	err := c.inFlight.charge(len(descriptors))
	if err == nil {
		err = c.conn.Send(packet, descriptors...)
	}
	if err != nil {
		if c.unsent == nil {
			c.unsent = err
		}
		c.hangUp()
	}
	return err
}

// whyUnsent is why a packet could not be sent, maybe by a goroutine that nobody asks for its error; nil if all were.
func (c *connection) whyUnsent() error {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	if c.unsent == nil {
		return nil
	}
	return fmt.Errorf("answer it: %w", c.unsent)
}

// fail answers a request with an error. That the session is closed, though not by the connection, is
// no answer: then its card has gone, and the connection ends.
func (c *connection) fail(m proto.Message, cause error) error {
	if errors.Is(cause, verbs.ErrClosed) && c.lose() {
		c.hangUp()
		return net.ErrClosed
	}
	return c.send(proto.EncodeFailure(proto.Failure, m.Code, m.ID, cause))
}

// reply answers a request with a grant.
func reply(c *connection, command *proto.Untyped, id uint32, grant any, descriptors ...int) error {
	packet, err := command.EncodeGrant(id, grant, c.arena)
	if err != nil {
		return err
	}
	return c.send(packet, descriptors...)
}

// watch tells the client when its session ends while the connection does not: the card has failed, and
// can still be asked, or it was closed.
func (c *connection) watch(session *hca.Session) {
	<-session.Done()
	err := session.Err()
	if errors.Is(session.Failure(), hca.ErrPagesGone) { // err is another one if the program has gone at once
		c.notePagesGone()
	}
	if !errors.Is(err, verbs.ErrClosed) {
		_ = c.send(proto.EncodeFailure(proto.Ended, 0, 0, err))
		if isArenaHole(session.Failure()) {
			c.hangUp()
		}
		return
	}
	if c.lose() {
		c.hangUp()
	}
}

// lose notes that the session was closed with its card; false if it was closed by the connection, or
// there is none.
func (c *connection) lose() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil || c.closing {
		return false
	}
	c.lost = true
	return true
}

// hasDied says whether an error is how a connection ends whose client closes it, or is killed.
func hasDied(err error) bool {
	for _, usual := range []error{io.EOF, net.ErrClosed, unix.EPIPE, unix.ECONNRESET} {
		if errors.Is(err, usual) {
			return true
		}
	}
	return false
}
