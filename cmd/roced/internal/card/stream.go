// SPDX-License-Identifier: Apache-2.0

package card

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// Stream is a connection of package rc (RC, UC) with the Message type of an Endpoint. Its errors state the
// failure of the device or the cause of the call's context.
type Stream struct {
	*rc.Conn
	device *Device
	domain *rc.Domain // of the SRQ; nil if receives are not shared
	in     [Batch]rc.Message
	lent   []rc.Message // the part of in that the caller owns
	peer   verbs.QPN    // sender of all messages
}

// StreamOptions configure a Stream.
type StreamOptions struct {
	Type         verbs.QPType // RC or UC
	Size         int          // maximum message size in bytes
	RecvDepth    int
	Shared       bool       // receive from an SRQ
	MTU          verbs.MTU  // of the path, equal on both sides; 0: that of the port
	Source       netip.Addr // source address
	TrafficClass uint8
	Spin         bool
}

// streamSends is the maximum number of outstanding messages of a Stream.
const streamSends = 16

// OpenStream creates an end that is not connected. Call Connect to connect it.
func OpenStream(d *Device, o StreamOptions) (*Stream, error) {
	return d.newStream(context.Background(), o, func(options rc.Options) (*rc.Conn, error) { return rc.New(d.Context, options) })
}

// DialStream connects to a StreamListener at an address and port.
func DialStream(ctx context.Context, d *Device, to netip.AddrPort, o StreamOptions) (*Stream, error) {
	return d.newStream(ctx, o, func(options rc.Options) (*rc.Conn, error) { return rc.DialAddr(ctx, d.Context, to, options) })
}

// AcceptStream listens at an address and port, passes them to announce, and accepts a connection.
func AcceptStream(ctx context.Context, d *Device, at netip.AddrPort, o StreamOptions, announce func(netip.AddrPort) error) (*Stream, error) {
	return d.newStream(ctx, o, func(options rc.Options) (_ *rc.Conn, err error) {
		l, err := rc.Listen(d.Context, at, options)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		if err := announce(l.Addr()); err != nil {
			return nil, err
		}
		return l.Accept(ctx)
	})
}

// newStream creates a stream; open creates its connection. If ctx is done, the error is its cause.
func (d *Device) newStream(ctx context.Context, o StreamOptions, open func(rc.Options) (*rc.Conn, error)) (s *Stream, err error) {
	if o.Spin {
		cli.MakeRoom(2)
	}
	s = &Stream{device: d}
	size := max(1, o.Size)
	if o.Shared {
		s.domain, err = rc.NewDomain(d.Context, rc.DomainOptions{RecvDepth: o.RecvDepth, MaxMessage: size})
	}
	if err == nil {
		s.Conn, err = open(rc.Options{
			Type: o.Type, Domain: s.domain, RecvDepth: o.RecvDepth, SendDepth: streamSends, MaxMessage: size,
			Reads: 1, Source: o.Source, MTU: o.MTU, TrafficClass: o.TrafficClass, Spin: o.Spin,
		})
	}
	if err != nil && ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), s.Close())
	}
	if err != nil {
		return nil, errors.Join(d.named(err), s.Close())
	}
	s.peer = s.RemoteQP().QPN
	return s, nil
}

// Connect connects an end created by OpenStream.
func (s *Stream) Connect(peer rc.QPAddr) error {
	s.peer = peer.QPN
	return s.device.explain(s.Conn.Connect(peer))
}

// Close waits for outstanding messages and frees the stream.
func (s *Stream) Close() (err error) {
	if s.Conn != nil {
		err = s.Conn.Close()
	}
	if s.domain != nil {
		err = errors.Join(err, s.domain.Close())
	}
	return err
}

// SendAll queues messages. It waits while the send queue is full.
func (s *Stream) SendAll(ctx context.Context, messages []ud.Message) error {
	for i := range messages {
		m := &messages[i]
		one := [1]rc.Message{{Data: m.Data, Imm: m.Imm, HasImm: m.HasImm}}
		if _, err := s.SendBatch(ctx, one[:]); err != nil {
			return s.explain(ctx, err)
		}
	}
	return nil
}

// Finish waits until the peer has received all messages.
func (s *Stream) Finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, StallTimeout, fmt.Errorf("sends did not complete: %w", unix.ETIMEDOUT))
	defer cancel()
	return s.explain(ctx, s.Flush(ctx))
}

// Receive waits for messages, as set by StreamOptions.Spin. The caller owns them until the next call.
func (s *Stream) Receive(ctx context.Context, _ bool, messages []ud.Message) (int, error) {
	s.Release(s.lent)
	n, err := s.RecvBatch(ctx, s.in[:min(len(s.in), len(messages))])
	s.lent = s.in[:n]
	for i := range s.lent {
		m := &s.lent[i]
		messages[i] = ud.Message{Data: m.Data, From: ud.Addr{QPN: s.peer}, Imm: m.Imm, HasImm: m.HasImm}
	}
	return n, s.explain(ctx, err)
}

// Arrived returns no messages: it exists to skip duplicates, which a connection does not deliver.
func (s *Stream) Arrived([]ud.Message) (int, error) { return 0, nil }

func (s *Stream) explain(ctx context.Context, err error) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, unix.EMSGSIZE): // of a connection, whose messages may exceed the port's MTU
		return fmt.Errorf("%w: %w", errSizes, err)
	}
	return s.device.explain(err)
}

// errSizes is the error of the receiver of a message that is too long.
var errSizes = errors.New("the peer's message exceeds the receive buffer; use the same size on both sides")
