package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// replyTimeout is how long a peer may take for an answer that needs no measuring, if
	// the command line says nothing else.
	replyTimeout = 10 * time.Second
	// maxLine bounds what a peer may send, in bytes.
	maxLine = 1 << 20
)

// errPeerGone: the connection ended while it was needed.
var errPeerGone = fmt.Errorf("the peer closed the connection: %w", unix.ECONNRESET)

// keepAlive finds within about ten seconds that a peer's host is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second, Count: 5}

// control is the TCP connection between two programs that measure: an exchange of
// addresses, and between two roced perf lines of JSON after it. Then its context ends with the connection, so that
// whoever waits for datagrams learns that the peer has gone.
type control struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	conn    net.Conn
	speaks  string        // what the peer has to be
	timeout time.Duration // for answers
	lines   chan []byte
	release func() bool // forgets that ctx closes the connection
}

// newControl takes the connection over, and closes it when ctx is done.
func newControl(ctx context.Context, conn net.Conn, speaks string) *control {
	c := &control{conn: conn, speaks: speaks, timeout: replyTimeout, lines: make(chan []byte, 1)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.release = context.AfterFunc(ctx, func() { conn.Close() })
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(keepAlive) // without it, a dead host is noticed later
	}
	return c
}

// localAddr is this side's address.
func (c *control) localAddr() (netip.Addr, error) {
	local, err := netip.ParseAddrPort(c.conn.LocalAddr().String())
	return local.Addr(), err
}

// exchange runs the exchange of addresses. Lines come after it.
func (c *control) exchange(step func(io.ReadWriter) error) error {
	if err := c.handshake(step); err != nil {
		return err
	}
	go c.read()
	return nil
}

// handshake runs a step that needs no measuring.
func (c *control) handshake(step func(io.ReadWriter) error) error {
	if err := c.conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return err
	}
	if err := step(c.conn); err != nil {
		return c.explain(err)
	}
	return c.conn.SetDeadline(time.Time{})
}

// explain turns what the net package says into what happened.
func (c *control) explain(err error) error {
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case isTimeout(err):
		return fmt.Errorf("no answer from %v within %v; is it %s, and not busy with another client? (%w)", c.conn.RemoteAddr(), c.timeout, c.speaks, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return fmt.Errorf("%v: %w", c.conn.RemoteAddr(), errPeerGone)
	}
	return err
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// read passes lines on until the connection ends.
func (c *control) read() {
	scanner := bufio.NewScanner(c.conn)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		line := append([]byte(nil), scanner.Bytes()...)
		select {
		case c.lines <- line:
		case <-c.ctx.Done():
			return
		}
	}
	err := scanner.Err()
	if err == nil {
		err = io.EOF
	}
	c.cancel(c.explain(err))
}

// send writes a message as a line.
func (c *control) send(message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return c.explain(err)
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return c.explain(err)
	}
	return nil
}

// receive waits for a line until ctx is done or the connection ends.
func (c *control) receive(ctx context.Context, message any) error {
	select {
	case line := <-c.lines:
		return decode(line, message)
	case <-ctx.Done():
	}
	select { // a line that came before the end counts
	case line := <-c.lines:
		return decode(line, message)
	default:
		return context.Cause(ctx)
	}
}

func decode(line []byte, message any) error {
	if err := json.Unmarshal(line, message); err != nil {
		return fmt.Errorf("the peer sent %.80q, which is not roced perf's protocol: %w", line, err)
	}
	return nil
}

// receiveSoon is receive for answers that need no measuring.
func (c *control) receiveSoon(message any) error {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.timeout, fmt.Errorf("no answer from %v within %v: %w", c.conn.RemoteAddr(), c.timeout, unix.ETIMEDOUT))
	defer cancel()
	return c.receive(ctx, message)
}

// Close ends the connection.
func (c *control) Close() error {
	c.release()
	c.cancel(net.ErrClosed)
	err := c.conn.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
