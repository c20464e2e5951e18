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

// Stream is package rc's connection (RC, UC), with the same kind of Message as an Endpoint has, and errors
// that say what has happened to the device, and to the context of the call: its cause.
type Stream struct {
	*rc.Conn
	device *Device
	domain *rc.Domain // of shared receives, else nil
	in     [Batch]rc.Message
	lent   []rc.Message // of in: the caller has them
	peer   verbs.QPN    // that messages come from
}

// StreamOptions say what a Stream is like.
type StreamOptions struct {
	Type         verbs.QPType // RC or UC
	Size         int          // bytes of the longest message
	RecvDepth    int
	Shared       bool       // receives are an SRQ's
	MTU          verbs.MTU  // of the path, which both sides must give; 0: the port's
	Source       netip.Addr // to send from
	TrafficClass uint8
	Spin         bool
}

// streamSends is how many messages a Stream has on their way at most.
const streamSends = 16

// OpenStream makes an end that is not connected yet: Connect does that.
func OpenStream(d *Device, o StreamOptions) (*Stream, error) {
	return d.newStream(context.Background(), o, func(options rc.Options) (*rc.Conn, error) { return rc.New(d.Context, options) })
}

// DialStream connects to an address and port, where a StreamListener is.
func DialStream(ctx context.Context, d *Device, to netip.AddrPort, o StreamOptions) (*Stream, error) {
	return d.newStream(ctx, o, func(options rc.Options) (*rc.Conn, error) { return rc.DialAddr(ctx, d.Context, to, options) })
}

// AcceptStream listens at an address and port, says where that is, and accepts a connection.
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

// newStream makes a stream by what makes its connection. If ctx has ended the error is its cause.
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

// Connect connects an end that OpenStream has made.
func (s *Stream) Connect(peer rc.QPAddr) error {
	s.peer = peer.QPN
	return s.device.explain(s.Conn.Connect(peer))
}

// Close frees what there is. Messages that are on their way leave first.
func (s *Stream) Close() (err error) {
	if s.Conn != nil {
		err = s.Conn.Close()
	}
	if s.domain != nil {
		err = errors.Join(err, s.domain.Close())
	}
	return err
}

// SendAll queues messages, and waits for room if need be.
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

// Finish waits until the peer has all that was sent.
func (s *Stream) Finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, StallTimeout, fmt.Errorf("sends do not complete: %w", unix.ETIMEDOUT))
	defer cancel()
	return s.explain(ctx, s.Flush(ctx))
}

// Receive waits for messages, as StreamOptions.Spin says. They are the caller's until the next call.
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

// Arrived gives none: a connection has no duplicates to pass over.
func (s *Stream) Arrived([]ud.Message) (int, error) { return 0, nil }

func (s *Stream) explain(ctx context.Context, err error) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, unix.EMSGSIZE): // of a connection, which the port's MTU does not limit
		return fmt.Errorf("%w: %w", errSizes, err)
	}
	return s.device.explain(err)
}

// errSizes is what the receiving side of a message that is too long is told.
var errSizes = errors.New("the peer's message is longer than the receive; give both sides the same size")
