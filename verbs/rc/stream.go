// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/roced/roced/internal/deadline"
)

// Stream is a connection as a stream of bytes. It implements net.Conn, for existing code. Both ends must use a Stream.
// It sends copies of the data in messages of at most Options.MaxMessage bytes, and marks the end of the data with an
// empty message with immediate data.
type Stream struct {
	conn        *Conn
	read, write *deadline.Deadline

	reading sync.Mutex
	message Message // the message that contains rest
	rest    []byte
	ended   bool // the peer has closed its stream for writing

	writing sync.Mutex
	closed  bool // closed for writing
}

var _ net.Conn = (*Stream)(nil)

// endOfStream is the immediate data of the last message.
const endOfStream = 0x454f46 // EOF

// Stream returns the connection as a stream. A program must create only one Stream of a connection, and must not use
// Send and Recv besides. Closing the stream closes the connection.
func (c *Conn) Stream() *Stream {
	return &Stream{conn: c, read: deadline.New(), write: deadline.New()}
}

// Read reads at least one byte. It returns io.EOF when the peer has closed its stream, or has closed it for writing.
// After the read deadline the error is os.ErrDeadlineExceeded, and after Close net.ErrClosed.
func (s *Stream) Read(b []byte) (int, error) {
	if s == nil {
		return 0, fmt.Errorf("read: %w", errNil)
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	if err := s.read.Context().Err(); err != nil {
		return 0, s.error("read", err)
	}
	for len(s.rest) == 0 && len(b) > 0 {
		if s.ended {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, s.error("read", err)
		}
	}
	n := copy(b, s.rest)
	if s.rest = s.rest[n:]; len(s.rest) == 0 {
		s.message.Release()
	}
	return n, nil
}

// next receives the next message.
func (s *Stream) next() (err error) {
	if s.message, err = s.conn.Recv(s.read.Context()); err != nil {
		return err
	}
	if s.rest = s.message.Data; len(s.rest) == 0 {
		s.ended = s.message.HasImm && s.message.Imm == endOfStream
		s.message.Release()
	}
	return nil
}

// Write sends a copy of b. It waits, until the write deadline, while the peer does not read.
func (s *Stream) Write(b []byte) (n int, err error) {
	if s == nil {
		return 0, fmt.Errorf("write: %w", errNil)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return 0, s.error("write", net.ErrClosed)
	}
	ctx := s.write.Context()
	var messages [16]Message
	for n < len(b) {
		count, taken := s.cut(b[n:], messages[:])
		sent, err := s.conn.SendBatch(ctx, messages[:count])
		if err != nil {
			for _, m := range messages[:sent] {
				n += len(m.Data)
			}
			return n, s.error("write", err)
		}
		n += taken
	}
	return n, nil
}

// cut splits the first bytes into messages.
func (s *Stream) cut(b []byte, messages []Message) (count, taken int) {
	for count < len(messages) && taken < len(b) {
		length := min(len(b)-taken, s.conn.options.MaxMessage)
		messages[count] = Message{Data: b[taken : taken+length]}
		count, taken = count+1, taken+length
	}
	return count, taken
}

// CloseWrite notifies the peer of the end of the data. Data from the peer can still be read.
func (s *Stream) CloseWrite() error {
	if s == nil {
		return fmt.Errorf("close for writing: %w", errNil)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.sayEnd(s.write.Context()); err != nil {
		return s.error("close", err)
	}
	return nil
}

// sayEnd notifies the peer of the end of the data, once. The caller holds writing.
func (s *Stream) sayEnd(ctx context.Context) error {
	if s.closed {
		return nil
	}
	s.closed = true
	_, err := s.conn.SendBatch(ctx, []Message{{Imm: endOfStream, HasImm: true}})
	return err
}

// Close closes the connection after the peer's card has acknowledged all written data, or after Options.Linger. Waiting
// calls return net.ErrClosed.
func (s *Stream) Close() error {
	if s == nil {
		return fmt.Errorf("close: %w", errNil)
	}
	if s.writing.TryLock() { // otherwise a Write is waiting, which closing the connection ends
		ctx, cancel := context.WithTimeout(context.Background(), s.conn.options.Linger)
		_ = s.sayEnd(ctx) // fails if the peer does not receive or has disconnected
		cancel()
		s.writing.Unlock()
	}
	if err := s.conn.Close(); err != nil {
		return s.error("close", err)
	}
	return nil
}

// LocalAddr returns the address and port of this end.
func (s *Stream) LocalAddr() net.Addr {
	if s == nil {
		return nil
	}
	return place(s.conn.LocalAddr())
}

// RemoteAddr returns the address and port of the other end.
func (s *Stream) RemoteAddr() net.Addr {
	if s == nil {
		return nil
	}
	return place(s.conn.RemoteAddr())
}

// SetDeadline sets the deadlines of reading and writing, also for calls that are waiting. The zero time means no
// deadline.
func (s *Stream) SetDeadline(t time.Time) error {
	if s == nil {
		return fmt.Errorf("set deadline: %w", errNil)
	}
	return s.set(t, s.read, s.write)
}

// SetReadDeadline sets the deadline of reading.
func (s *Stream) SetReadDeadline(t time.Time) error {
	if s == nil {
		return fmt.Errorf("set read deadline: %w", errNil)
	}
	return s.set(t, s.read)
}

// SetWriteDeadline sets the deadline of writing.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	if s == nil {
		return fmt.Errorf("set write deadline: %w", errNil)
	}
	return s.set(t, s.write)
}

func (s *Stream) set(t time.Time, deadlines ...*deadline.Deadline) error {
	for _, d := range deadlines {
		d.Set(t)
	}
	if s.conn.life.Err() != nil {
		return s.error("set", ErrClosed)
	}
	return nil
}

// error wraps err in a net.OpError, as package net does. Timeout of a net.OpError is true only if its Err is
// os.ErrDeadlineExceeded itself, not an error that wraps it.
func (s *Stream) error(what string, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = os.ErrDeadlineExceeded
	}
	return &net.OpError{Op: what, Net: network, Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
}

const network = "roce"

// place is an address and port as a net.Addr.
type place netip.AddrPort

func (place) Network() string  { return network }
func (p place) String() string { return netip.AddrPort(p).String() }

// StreamListener is a listener of streams. It implements net.Listener, for existing code.
type StreamListener struct{ listener *Listener }

var _ net.Listener = (*StreamListener)(nil)

// Streams returns the listener as a net.Listener whose connections are Streams.
func (l *Listener) Streams() *StreamListener { return &StreamListener{l} }

// Accept waits for a connection.
func (s *StreamListener) Accept() (net.Conn, error) {
	if s == nil {
		return nil, fmt.Errorf("accept: %w", errNil)
	}
	conn, err := s.listener.Accept(context.Background())
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: network, Addr: s.Addr(), Err: err}
	}
	return conn.Stream(), nil
}

// Close closes the listener.
func (s *StreamListener) Close() error {
	if s == nil {
		return fmt.Errorf("close: %w", errNil)
	}
	return s.listener.Close()
}

// Addr returns the address of the listener.
func (s *StreamListener) Addr() net.Addr {
	if s == nil {
		return nil
	}
	return place(s.listener.Addr())
}
