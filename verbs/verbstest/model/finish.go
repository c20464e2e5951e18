// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

// divergence is the panic value that ends a step in which the Provider and the model differ.
type divergence string

func (p *player) differ(format string, args ...any) { panic(divergence(fmt.Sprintf(format, args...))) }

// note logs a step, for the analysis of a difference.
func (p *player) note(s *side, format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf("%5d %s: ", p.step, s.name)+fmt.Sprintf(format, args...))
}

// noErrno represents an error without an errno.
const noErrno unix.Errno = 0xFFFF

// errnoOf returns the errno of an error, or 0 for nil.
func errnoOf(err error) (errno unix.Errno) {
	if err != nil && !errors.As(err, &errno) {
		return noErrno
	}
	return errno
}

// want compares the error of a call with the model's.
func (p *player) want(what string, err error, want unix.Errno) {
	if got := errnoOf(err); got != want {
		p.differ("%s: %v (errno %d), the model has %v (errno %d)", what, err, got, want, want)
	}
	if want != 0 {
		p.seen[unix.ErrnoName(want)]++
	}
}

// wantIf is like want: it expects nil if ok, else EINVAL.
func (p *player) wantIf(what string, err error, ok bool) {
	want := unix.EINVAL
	if ok {
		want = 0
	}
	p.want(what, err, want)
}

// barrier is an additional queue pair. The arrival of its message shows that all earlier messages have arrived.
type barrier struct {
	side     *side
	pd       *verbs.PD
	mr       *verbs.MR
	cq       *verbs.CQ
	qp       *verbs.QP
	peer     *barrier
	send     []verbs.SendWR
	recv     []verbs.RecvWR
	arrivals int // messages received since the last wait
	sent     int
}

func newBarrier(s *side) *barrier {
	b := &barrier{side: s}
	var err error
	b.pd, err = s.ctx.AllocPD()
	rig.Check(s, err)
	b.mr, err = b.pd.AllocMR(grhLen, verbs.AccessLocalWrite)
	rig.Check(s, err)
	b.cq, err = s.ctx.CreateCQ(4)
	rig.Check(s, err)
	b.qp, err = b.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: b.cq, RecvCQ: b.cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1}})
	rig.Check(s, err)
	rig.Check(s, b.qp.Activate(rig.TestQKey))
	b.recv = []verbs.RecvWR{{SGList: []verbs.SGE{b.mr.SGE(0, grhLen)}}}
	rig.Check(s, b.qp.PostRecv(b.recv))
	return b
}

// connect creates the address handle of the other side.
func (b *barrier) connect(at *side) {
	s := b.side
	ah, err := b.pd.CreateAH(rig.Guard(s), s.device().Route(at.end.IPv4))
	rig.Check(s, err)
	b.peer = at.barrier
	b.send = []verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: b.peer.qp.Number(), RemoteQKey: rig.TestQKey}}
}

// wait sends a message to the other side and waits until it is sent and received. It polls both sides, since some
// cards work only while a program polls.
func (b *barrier) wait() {
	p := b.side.player
	rig.Check(p, b.qp.PostSend(b.send))
	peer := b.peer
	var end time.Time
	for tries := 1; b.sent == 0 || peer.arrivals == 0; tries++ {
		b.poll()
		peer.poll()
		if tries%1000 == 0 {
			if end.IsZero() {
				end = time.Now().Add(rig.WaitTimeout)
			}
			if time.Now().After(end) {
				p.differ("a message to %s did not arrive within the timeout", peer.side.name)
			}
		}
	}
	b.sent, peer.arrivals = 0, 0
	rig.Check(p, peer.qp.PostRecv(peer.recv))
}

func (b *barrier) poll() {
	var wcs [2]verbs.WC
	n, err := b.cq.Poll(wcs[:])
	rig.Check(b.side, err)
	for _, wc := range wcs[:n] {
		rig.Check(b.side, wc.Err())
		if wc.Opcode == verbs.WCRecv {
			b.arrivals++
		} else {
			b.sent++
		}
	}
}

// finishStep completes a step in the model, waits until both cards have executed it, and compares the memory of received
// messages. The final commands return after the current round of each card.
func (s *side) finishStep(q *playedQP) {
	q.model.run()
	s.world.flushFailed()
	if q.model.state != verbs.QPStateSQD {
		if err := q.Drain(noTimeout); err != nil {
			s.differ("drain %s: %v", q, err)
		}
	}
	s.barrier.wait()
	for _, other := range s.sides {
		_, _, err := other.barrier.qp.Query()
		rig.Check(s, err)
	}
	s.checkArrivals()
	if s.world.overran {
		s.seen["overrun"]++
	}
}

// checkArrivals compares the memory of received messages with the model's. The model does not predict the bytes of a
// GRH: its fields are checked, and its bytes copied to the model.
func (p *player) checkArrivals() {
	arrivals := p.world.arrivals
	for i, a := range arrivals {
		grh := p.readGRH(a)
		if overwritten(a, arrivals[i+1:]) {
			continue
		}
		if says := wrongGRH(verbs.GRH(grh), a.packet); says != "" {
			p.differ("GRH of a message to %v: %s", a.packet.qpn, says)
		}
	}
	for _, a := range arrivals {
		if a.packet.route.DGID.IsMulticast() {
			p.seen["copy to a group"]++
		}
		for _, piece := range a.pieces {
			if got := p.bytes[piece.mr][piece.from:][:piece.len]; !bytes.Equal(got, piece.bytes()) {
				p.differ("memory of a message of %d bytes: %d bytes at %d of a region are\n%x, the model has\n%x", len(a.packet.payload.bytes), piece.len, piece.from, got, piece.bytes())
			}
		}
	}
}

// readGRH returns the GRH of a message, and copies the unknown bytes of the message's memory to the model.
func (p *player) readGRH(a modelArrival) (grh []byte) {
	for _, piece := range a.pieces {
		got, into, unknown := p.bytes[piece.mr][piece.from:][:piece.len], piece.bytes(), piece.unknown()
		for i := range got {
			if unknown[i] {
				into[i], unknown[i] = got[i], false
			}
		}
		grh = append(grh, got[:min(piece.len, grhLen-len(grh))]...)
	}
	return grh
}

// overwritten reports whether a later message was written to the same memory.
func overwritten(a modelArrival, later []modelArrival) bool {
	for _, other := range later {
		for _, p := range a.pieces {
			for _, o := range other.pieces {
				if p.mr == o.mr && p.from < o.from+o.len && o.from < p.from+p.len {
					return true
				}
			}
		}
	}
	return false
}

// wrongGRH describes the error in the GRH of a packet, or returns an empty string.
func wrongGRH(grh verbs.GRH, p *modelPacket) string {
	route, version := p.route, 6
	if route.DGID.IsIPv4() {
		route.FlowLabel, version = 0, 4 // IPv4 has no flow label
	}
	if route.HopLimit == 0 {
		route.HopLimit = defaultHops
	}
	got := verbs.GlobalRoute{DGID: grh.DGID(), SGIDIndex: route.SGIDIndex, FlowLabel: grh.FlowLabel(), HopLimit: grh.HopLimit(), TrafficClass: grh.TrafficClass()}
	if grh.IPVersion() != version || grh.SGID() != p.source || got != route {
		return fmt.Sprintf("from %v, %+v, the model has %v, %+v", grh.SGID(), got, p.source, route)
	}
	return ""
}
