package card

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// Stream is a connected queue pair (RC, UC) that exchanges messages with one peer, as an Endpoint does
// with any: with receives posted ahead, and the same kind of Message.
type Stream struct {
	Device  *Device
	options StreamOptions
	source  verbs.GIDEntry
	psn     verbs.PSN // of the first packet

	pd     *verbs.PD
	mr     *verbs.MR
	sends  *verbs.CQ
	recvs  *verbs.CQ
	srq    *verbs.SRQ // nil unless receives are shared
	qp     *verbs.QP
	lent   []uint64 // receives whose messages the caller has
	wcs    [32]verbs.WC
	posted int // sends
	done   int
}

// StreamOptions say what a Stream is like.
type StreamOptions struct {
	Type         verbs.QPType // RC or UC
	ID           *cm.ID       // which has the queue pair, and connects it; nil: Connect does
	Size         int          // bytes of the longest message
	RecvDepth    int
	Shared       bool      // receives are an SRQ's
	MTU          verbs.MTU // of the path, which both sides must give; 0: the port's
	TrafficClass uint8
	Spin         bool
}

// streamSends is how many messages a Stream has on their way at most.
const streamSends = 16

// OpenStream makes a queue pair whose packets leave from a line of the GID table. Its receives are posted
// when it is connected; that of an id has them at once.
func OpenStream(d *Device, source verbs.GIDEntry, o StreamOptions) (s *Stream, err error) {
	if o.Spin {
		cli.MakeRoom(2)
	}
	s = &Stream{Device: d, options: o, source: source, psn: verbs.PSN(rand.Uint32N(1 << 24))}
	if err := s.open(); err != nil {
		return nil, errors.Join(d.named(err), s.Close())
	}
	return s, nil
}

func (s *Stream) open() (err error) {
	if s.pd, err = s.Device.AllocPD(); err != nil {
		return err
	}
	if s.mr, err = s.pd.AllocMR(max(1, (s.options.RecvDepth+streamSends)*s.options.Size), verbs.AccessLocalWrite); err != nil {
		return err
	}
	if s.sends, err = s.Device.CreateCQ(streamSends); err != nil {
		return err
	}
	if s.recvs, err = s.Device.CreateCQ(s.options.RecvDepth); err != nil {
		return err
	}
	if s.options.Shared {
		if s.srq, err = s.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: uint32(s.options.RecvDepth), MaxSGE: 1}); err != nil {
			return err
		}
	}
	init := verbs.QPInitAttr{
		Type: s.options.Type, SendCQ: s.sends, RecvCQ: s.recvs, SRQ: s.srq, Cap: verbs.QPCap{MaxSendWR: streamSends, MaxRecvWR: uint32(s.options.RecvDepth)},
	}
	if s.options.ID == nil {
		s.qp, err = s.pd.CreateQP(&init)
		return err
	}
	if s.qp, err = s.options.ID.CreateQP(s.pd, &init); err != nil {
		return err
	}
	return s.postRecvs()
}

// Close frees what there is. Messages that are on their way leave first.
func (s *Stream) Close() (err error) {
	switch {
	case s.qp == nil:
	case s.options.ID != nil:
		err = s.options.ID.DestroyQP()
	default:
		err = s.qp.Close()
	}
	for _, cq := range []*verbs.CQ{s.sends, s.recvs} {
		if cq != nil {
			err = errors.Join(err, cq.Close())
		}
	}
	if s.srq != nil {
		err = errors.Join(err, s.srq.Close())
	}
	if s.mr != nil {
		err = errors.Join(err, s.mr.Close())
	}
	if s.pd != nil {
		err = errors.Join(err, s.pd.Close())
	}
	return err
}

// QPN is the number of its queue pair.
func (s *Stream) QPN() verbs.QPN { return s.qp.Number() }

// PSN is that of its first packet, which the peer has to know.
func (s *Stream) PSN() verbs.PSN { return s.psn }

// Connect makes the connection to a peer's queue pair, and posts the receives.
func (s *Stream) Connect(qpn verbs.QPN, psn verbs.PSN, gid verbs.GID) error {
	attr := ConnectionAttr(s.source, gid)
	attr.AHAttr.GRH.TrafficClass = s.options.TrafficClass
	attr.DestQPN, attr.RQPSN, attr.SQPSN, attr.PathMTU = qpn, psn, s.psn, s.options.MTU
	if err := s.qp.Connect(&attr); err != nil {
		return fmt.Errorf("connect to %v: %w", gid.Addr(), s.Device.explain(err))
	}
	return s.postRecvs()
}

func (s *Stream) postRecvs() error {
	for i := range s.options.RecvDepth {
		if err := s.postRecv(uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

// Peer is the queue pair to which an id has connected it, and the PSN of that one's first packet.
func (s *Stream) Peer() (qpn verbs.QPN, psn verbs.PSN, gid verbs.GID, err error) {
	attr, _, err := s.qp.Query()
	s.psn = attr.SQPSN
	return attr.DestQPN, attr.RQPSN, attr.AHAttr.GRH.DGID, err
}

// slot is the memory of a receive, or, after those, of a send.
func (s *Stream) slot(i int) []byte { return s.mr.Bytes()[i*s.options.Size:][:s.options.Size] }

func (s *Stream) postRecv(slot uint64) error {
	wrs := []verbs.RecvWR{{ID: slot, SGList: []verbs.SGE{s.mr.SGE(int(slot)*s.options.Size, s.options.Size)}}}
	if s.srq != nil {
		return s.srq.PostRecv(wrs)
	}
	return s.qp.PostRecv(wrs)
}

// SendAll queues messages, and waits for room if need be.
func (s *Stream) SendAll(ctx context.Context, messages []ud.Message) error {
	for _, m := range messages {
		if err := s.awaitSends(ctx, streamSends-1); err != nil {
			return err
		}
		slot := s.options.RecvDepth + s.posted%streamSends
		wr := verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, ImmData: m.Imm, SGList: []verbs.SGE{s.mr.SGE(slot*s.options.Size, copy(s.slot(slot), m.Data))}}
		if m.HasImm {
			wr.Opcode = verbs.WRSendWithImm
		}
		if err := s.qp.PostSend([]verbs.SendWR{wr}); err != nil {
			return s.Device.explain(err)
		}
		s.posted++
	}
	return nil
}

// awaitSends waits until no more than so many sends are on their way.
func (s *Stream) awaitSends(ctx context.Context, most int) error {
	for s.posted-s.done > most {
		var wcs [streamSends]verbs.WC
		n, err := s.Device.Completions(ctx, s.sends, !s.options.Spin, wcs[:])
		if err != nil {
			return err
		}
		s.done += n
	}
	return nil
}

// cause is why receives were flushed: a send that failed, if there is one.
func (s *Stream) cause(flushed error) error {
	if !errors.Is(flushed, unix.ECANCELED) {
		return flushed
	}
	var wcs [streamSends]verbs.WC
	n, err := s.sends.Poll(wcs[:])
	for i := 0; i < n && err == nil; i++ {
		err = wcs[i].Err()
	}
	if err == nil || errors.Is(err, unix.ECANCELED) {
		return flushed
	}
	return s.Device.explain(err)
}

// Finish waits until the peer has all that was sent.
func (s *Stream) Finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, StallTimeout, fmt.Errorf("sends do not complete: %w", unix.ETIMEDOUT))
	defer cancel()
	return s.awaitSends(ctx, 0)
}

// Receive waits for messages. They are the caller's until the next call.
func (s *Stream) Receive(ctx context.Context, sleep bool, messages []ud.Message) (int, error) {
	for _, slot := range s.lent {
		if err := s.postRecv(slot); err != nil {
			return 0, s.Device.explain(err)
		}
	}
	s.lent = s.lent[:0]
	wcs := s.wcs[:min(len(s.wcs), len(messages))]
	n, err := s.Device.Completions(ctx, s.recvs, sleep, wcs)
	if err != nil {
		return 0, s.cause(err)
	}
	for i := range wcs[:n] {
		wc := &wcs[i]
		s.lent = append(s.lent, wc.ID)
		messages[i] = ud.Message{Data: s.slot(int(wc.ID))[:wc.ByteLen], From: ud.Addr{QPN: wc.SrcQP}, Imm: wc.ImmData, HasImm: wc.Flags&verbs.WCWithImm != 0}
	}
	return n, nil
}

// Arrived gives none: a connection has no duplicates to pass over.
func (s *Stream) Arrived([]ud.Message) (int, error) { return 0, nil }
