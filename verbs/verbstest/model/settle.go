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

// parting ends a step in which Provider and model part.
type parting string

func (p *player) part(format string, args ...any) { panic(parting(fmt.Sprintf(format, args...))) }

// note logs a step, for the analysis of a difference.
func (p *player) note(s *side, format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf("%5d %s: ", p.step, s.name)+fmt.Sprintf(format, args...))
}

// noErrno stands for an error that has none.
const noErrno unix.Errno = 0xFFFF

// errnoOf gives an error's errno; 0 for nil.
func errnoOf(err error) (errno unix.Errno) {
	if err != nil && !errors.As(err, &errno) {
		return noErrno
	}
	return errno
}

// want compares a call's error with the model's.
func (p *player) want(what string, err error, want unix.Errno) {
	if got := errnoOf(err); got != want {
		p.part("%s: %v (errno %d), the model has %v (errno %d)", what, err, got, want, want)
	}
	if want != 0 {
		p.seen[unix.ErrnoName(want)]++
	}
}

// wantIf is want of a call that succeeds or is EINVAL.
func (p *player) wantIf(what string, err error, ok bool) {
	want := unix.EINVAL
	if ok {
		want = 0
	}
	p.want(what, err, want)
}

// beacon is a queue pair of the player's own, whose messages say that those before them have arrived.
type beacon struct {
	side     *side
	pd       *verbs.PD
	mr       *verbs.MR
	cq       *verbs.CQ
	qp       *verbs.QP
	peer     *beacon
	send     []verbs.SendWR
	recv     []verbs.RecvWR
	arrivals int // not awaited yet
	sent     int
}

func newBeacon(s *side) *beacon {
	b := &beacon{side: s}
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

// aim makes the handle to the other side.
func (b *beacon) aim(at *side) {
	s := b.side
	ah, err := b.pd.CreateAH(rig.Guard(s), s.device().Route(at.end.IPv4))
	rig.Check(s, err)
	b.peer = at.beacon
	b.send = []verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: b.peer.qp.Number(), RemoteQKey: rig.TestQKey}}
}

// shine sends a message and waits until it has been sent and has arrived. It polls both sides, since a
// card may be run by a polling program.
func (b *beacon) shine() {
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
				p.part("a message to %s did not arrive: the card does not go on", peer.side.name)
			}
		}
	}
	b.sent, peer.arrivals = 0, 0
	rig.Check(p, peer.qp.PostRecv(peer.recv))
}

func (b *beacon) poll() {
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

// settle waits until all that follows from a step has happened, with both programs and with the model,
// and compares the memory of received messages. A command ends after the round of the card in which it
// was asked.
func (s *side) settle(q *playedQP) {
	q.model.run()
	s.world.settle()
	if q.model.state != verbs.QPStateSQD {
		if err := q.Drain(guardless); err != nil {
			s.part("drain %s: %v", q, err)
		}
	}
	s.beacon.shine()
	for _, other := range s.sides {
		_, _, err := other.beacon.qp.Query()
		rig.Check(s, err)
	}
	s.checkArrivals()
	if s.world.overran {
		s.seen["overrun"]++
	}
}

// checkArrivals compares the memory of messages that arrived with the model's. The model does not know the bytes of a
// GRH: their meaning is checked, and the model copies them.
func (p *player) checkArrivals() {
	arrivals := p.world.arrivals
	for i, a := range arrivals {
		grh := p.readGRH(a)
		if overwritten(a, arrivals[i+1:]) {
			continue
		}
		if says := wrongGRH(verbs.GRH(grh), a.packet); says != "" {
			p.part("GRH of a message to %v: %s", a.packet.qpn, says)
		}
	}
	for _, a := range arrivals {
		if a.packet.route.DGID.IsMulticast() {
			p.seen["copy to a group"]++
		}
		for _, piece := range a.pieces {
			if got := p.bytes[piece.mr][piece.from:][:piece.len]; !bytes.Equal(got, piece.bytes()) {
				p.part("memory of a message of %d bytes: %d bytes at %d of a region are\n%x, the model has\n%x", len(a.packet.payload.bytes), piece.len, piece.from, got, piece.bytes())
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
		route.FlowLabel, version = 0, 4 // IPv4 has none
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
