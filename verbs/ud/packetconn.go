// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/roced/roced/internal/deadline"
	"github.com/roced/roced/verbs"
)

// PacketConn is a net.PacketConn, and, if it has a peer (Dial), a net.Conn on an endpoint, for existing code. It copies
// each message once more than Recv does, and ReadFrom allocates an address for each.
type PacketConn struct {
	endpoint    *Endpoint
	read, write *deadline.Deadline
}

var (
	_ net.PacketConn = (*PacketConn)(nil)
	_ net.Conn       = (*PacketConn)(nil)
)

// PacketConn returns the endpoint as a net.PacketConn. Each PacketConn has its own deadlines. Closing one closes the
// endpoint.
func (e *Endpoint) PacketConn() *PacketConn {
	return &PacketConn{endpoint: e, read: deadline.New(), write: deadline.New()}
}

// ReadFrom copies the next message to b; excess bytes are lost, as with UDP. The address is an Addr. The error is
// os.ErrDeadlineExceeded after the read deadline, and net.ErrClosed after Close, or when the program closes the context
// or the card.
func (c *PacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	if c == nil {
		return 0, nil, fmt.Errorf("read from: %w", errNil)
	}
	n, from, err := c.readMessage(b)
	if err != nil {
		return 0, nil, err
	}
	return n, from, nil
}

// Read is ReadFrom without the address.
func (c *PacketConn) Read(b []byte) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("read: %w", errNil)
	}
	n, _, err := c.readMessage(b)
	return n, err
}

func (c *PacketConn) readMessage(b []byte) (int, Addr, error) {
	m, err := c.endpoint.Recv(c.read.Context())
	if err != nil {
		return 0, Addr{}, c.error("read", nil, err)
	}
	n := copy(b, m.Data)
	m.Release()
	return n, m.From, nil
}

// WriteTo sends a message to an Addr, or a *Addr. It waits, until the write deadline, for room and for
// a new destination's hardware address.
func (c *PacketConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("write to: %w", errNil)
	}
	a := asAddr(to)
	if a.IsZero() {
		if _, ok := to.(*Addr); ok {
			to = a // a nil pointer has no text
		}
		return 0, c.error("write", to, fmt.Errorf("%w: the address is not a ud.Addr; ud.ParseAddr parses its text", verbs.ErrInvalid))
	}
	return c.writeMessage(b, a)
}

// asAddr returns the Addr that an address is or points to, or the zero Addr for other types.
func asAddr(to net.Addr) Addr {
	switch to := to.(type) {
	case Addr:
		return to
	case *Addr:
		if to != nil {
			return *to
		}
	}
	return Addr{}
}

// Write sends a message to the peer.
func (c *PacketConn) Write(b []byte) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("write: %w", errNil)
	}
	return c.writeMessage(b, Addr{})
}

func (c *PacketConn) writeMessage(b []byte, to Addr) (int, error) {
	if err := c.endpoint.Send(c.write.Context(), to, b); err != nil {
		if to.IsZero() {
			to = c.endpoint.peer
		}
		return 0, c.error("write", to, err)
	}
	return len(b), nil
}

// Close closes the endpoint. Waiting calls return net.ErrClosed.
func (c *PacketConn) Close() error {
	if c == nil {
		return fmt.Errorf("close: %w", errNil)
	}
	if err := c.endpoint.Close(); err != nil {
		return c.error("close", nil, err)
	}
	return nil
}

// LocalAddr returns the endpoint's Addr.
func (c *PacketConn) LocalAddr() net.Addr {
	if c == nil {
		return nil
	}
	return c.endpoint.LocalAddr()
}

// RemoteAddr returns the peer's Addr, or the zero Addr without a peer.
func (c *PacketConn) RemoteAddr() net.Addr {
	if c == nil {
		return nil
	}
	return c.endpoint.RemoteAddr()
}

// SetDeadline sets the deadlines of reading and writing, also for calls that are waiting. The zero time means no
// deadline.
func (c *PacketConn) SetDeadline(t time.Time) error {
	if c == nil {
		return fmt.Errorf("set deadline: %w", errNil)
	}
	c.read.Set(t)
	c.write.Set(t)
	return c.closed()
}

// SetReadDeadline sets the deadline of reading.
func (c *PacketConn) SetReadDeadline(t time.Time) error {
	if c == nil {
		return fmt.Errorf("set read deadline: %w", errNil)
	}
	c.read.Set(t)
	return c.closed()
}

// SetWriteDeadline sets the deadline of writing.
func (c *PacketConn) SetWriteDeadline(t time.Time) error {
	if c == nil {
		return fmt.Errorf("set write deadline: %w", errNil)
	}
	c.write.Set(t)
	return c.closed()
}

func (c *PacketConn) closed() error {
	if c.endpoint.life.Err() != nil {
		return c.error("set", nil, ErrClosed)
	}
	return nil
}

// error wraps err as package net does. A net.OpError is a net.Error whose Timeout is true only if its Err is the
// deadline's error itself, not an error that wraps it.
func (c *PacketConn) error(what string, to net.Addr, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = os.ErrDeadlineExceeded
	}
	return &net.OpError{Op: what, Net: "roce", Source: c.LocalAddr(), Addr: to, Err: bare(err)}
}
