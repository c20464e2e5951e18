package meet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// ErrPeerGone: the connection ended while it was needed.
var ErrPeerGone = fmt.Errorf("the peer closed the connection: %w", unix.ECONNRESET)

// keepAlive finds within about ten seconds that a peer's host is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second, Count: 5}

// Control is the TCP connection between two programs that measure. They exchange addresses; two roced
// perf then exchange lines of JSON. After that its context ends with the connection, so that a wait
// for datagrams ends when the peer is gone.
type Control struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	conn    net.Conn
	speaks  string        // what the peer has to be
	Timeout time.Duration // for answers
	lines   chan []byte
	release func() bool // forgets that ctx closes the connection
}

// NewControl takes the connection over, and closes it when ctx is done.
func NewControl(ctx context.Context, conn net.Conn, speaks string) *Control {
	c := &Control{conn: conn, speaks: speaks, Timeout: ReplyTimeout, lines: make(chan []byte, 1)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.release = context.AfterFunc(ctx, func() { conn.Close() })
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(keepAlive) // without it, a dead host is noticed later
	}
	return c
}

// Context is done when the connection ends, or what NewControl was given is done.
func (c *Control) Context() context.Context { return c.ctx }

// RemoteAddr is the peer's address.
func (c *Control) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// LocalAddr is this side's address.
func (c *Control) LocalAddr() (netip.Addr, error) {
	local, err := netip.ParseAddrPort(c.conn.LocalAddr().String())
	return local.Addr(), err
}

// Exchange runs the exchange of addresses. Lines come after it.
func (c *Control) Exchange(step func(io.ReadWriter) error) error {
	if err := c.Handshake(step); err != nil {
		return err
	}
	go c.read()
	return nil
}

// Handshake runs a step that needs no measuring.
func (c *Control) Handshake(step func(io.ReadWriter) error) error {
	if err := c.conn.SetDeadline(time.Now().Add(c.Timeout)); err != nil {
		return err
	}
	if err := step(c.conn); err != nil {
		return c.Explain(err)
	}
	return c.conn.SetDeadline(time.Time{})
}

// Explain turns what the net package says into what happened.
func (c *Control) Explain(err error) error {
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case IsTimeout(err):
		return fmt.Errorf("no answer from %v within %v; is it %s, and not busy with another client? (%w)", c.conn.RemoteAddr(), c.Timeout, c.speaks, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return fmt.Errorf("%v: %w", c.conn.RemoteAddr(), ErrPeerGone)
	}
	return err
}

// IsTimeout says whether an answer did not come in time.
func IsTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Close ends the connection.
func (c *Control) Close() error {
	c.release()
	c.cancel(net.ErrClosed)
	err := c.conn.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
