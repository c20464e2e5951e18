// SPDX-License-Identifier: Apache-2.0

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

// ErrPeerGone reports that the peer has closed the connection.
var ErrPeerGone = fmt.Errorf("the peer closed the connection: %w", unix.ECONNRESET)

// keepAlive detects within about ten seconds that the peer's host is down.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second, Count: 5}

// Control is the TCP connection between two measuring programs. They exchange addresses; two roced perf then also
// exchange lines of JSON. Its context is done when the connection ends, so that a wait for datagrams ends with the
// peer.
type Control struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	conn    net.Conn
	speaks  string        // expected peer program
	Timeout time.Duration // for responses
	lines   chan []byte
	release func() bool // cancels closing by ctx
}

// NewControl creates a Control that owns the connection and closes it when ctx is done.
func NewControl(ctx context.Context, conn net.Conn, speaks string) *Control {
	c := &Control{conn: conn, speaks: speaks, Timeout: ReplyTimeout, lines: make(chan []byte, 1)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.release = context.AfterFunc(ctx, func() { conn.Close() })
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(keepAlive) // otherwise a host that is down is detected later
	}
	return c
}

// Context is done when the connection ends or the context of NewControl is done.
func (c *Control) Context() context.Context { return c.ctx }

// RemoteAddr returns the address of the peer.
func (c *Control) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// LocalAddr returns the address of this side.
func (c *Control) LocalAddr() (netip.Addr, error) {
	local, err := netip.ParseAddrPort(c.conn.LocalAddr().String())
	return local.Addr(), err
}

// Exchange runs the exchange of addresses, and then reads lines.
func (c *Control) Exchange(step func(io.ReadWriter) error) error {
	if err := c.Handshake(step); err != nil {
		return err
	}
	go c.read()
	return nil
}

// Handshake runs a step with the timeout of the connection.
func (c *Control) Handshake(step func(io.ReadWriter) error) error {
	if err := c.conn.SetDeadline(time.Now().Add(c.Timeout)); err != nil {
		return err
	}
	if err := step(c.conn); err != nil {
		return c.Explain(err)
	}
	return c.conn.SetDeadline(time.Time{})
}

// Explain adds the cause to an error of the net package.
func (c *Control) Explain(err error) error {
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case IsTimeout(err):
		return fmt.Errorf("%v does not respond within %v; check that %s runs there and that no other client is using it (%w)", c.conn.RemoteAddr(), c.Timeout, c.speaks, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return fmt.Errorf("%v: %w", c.conn.RemoteAddr(), ErrPeerGone)
	}
	return err
}

// IsTimeout reports whether a response did not arrive in time.
func IsTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Close closes the connection.
func (c *Control) Close() error {
	c.release()
	c.cancel(net.ErrClosed)
	err := c.conn.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
