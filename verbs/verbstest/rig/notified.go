// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
)

// Notified is a station with a queue pair whose completions go to a CQ of a channel.
type Notified struct {
	*Station
	Peer    *Station
	Channel *verbs.CompChannel
	CQ      *verbs.CQ
	QP      *verbs.QP
	AH      *verbs.AH // the peer's handle of this station
}

// NewNotified creates one at b for n receives and their completions. n is a power of two.
func (w *World) NewNotified(n int) *Notified {
	w.B.Helper()
	c := &Notified{Station: w.B, Peer: w.A, Channel: w.B.NewChannel(), AH: w.A.AH(w.B.End.IPv4)}
	c.CQ = w.B.NewCQOn(c.Channel, n)
	capacity := DefaultCap()
	capacity.MaxRecvWR = uint32(n)
	c.QP = w.B.NewQPWith(verbs.QPInitAttr{SendCQ: w.B.CQ, RecvCQ: c.CQ, Cap: capacity})
	Check(w.B, c.QP.Activate(TestQKey))
	return c
}

func (d *Device) NewChannel() *verbs.CompChannel {
	d.Helper()
	channel, err := d.Ctx.CreateCompChannel()
	Check(d, err)
	return channel
}

func (d *Device) NewCQOn(channel *verbs.CompChannel, entries int) *verbs.CQ {
	d.Helper()
	cq, err := d.Ctx.CreateCQEx(&verbs.CQInitAttr{Entries: entries, Channel: channel})
	Check(d, err)
	return cq
}

// Arrive sends n messages to the queue pair, and returns when their completions are queued.
func (c *Notified) Arrive(n int, flags verbs.SendFlags) {
	c.Helper()
	before := c.peeked()
	for i := range n {
		c.ReceiveOn(c.QP, i%Slots)
		wr := c.Peer.Send(1, c.AH, c.QP)
		wr.Flags |= flags
		c.Peer.Post(wr)
		c.Peer.Expect(OK(1))
	}
	Eventually(c, "completions", func() bool { return c.peeked() == before+n })
}

func (c *Notified) peeked() int {
	c.Helper()
	n, err := kernel.PeekCQ(c.CQ, 1<<20)
	Check(c, err)
	return n
}

func (c *Notified) Arm(flags verbs.CQNotifyFlags) (missed bool) {
	c.Helper()
	missed, err := c.CQ.ReqNotify(flags)
	Check(c, err)
	return missed
}

// ExpectEvent waits for an event of this CQ, and acknowledges it.
func (c *Notified) ExpectEvent() {
	c.Helper()
	cq, err := c.Channel.Get(Guard(c))
	Check(c, err)
	if cq != c.CQ {
		c.Errorf("an event of another CQ")
	}
	Check(c, cq.AckEvents(1))
}

// NoEvent checks that the channel has no event: the event of a probe CQ must be the first one.
func (c *Notified) NoEvent() {
	c.Helper()
	Check(c, NoEventOf(c, c.Channel, c.Station))
}

// NoEventOf causes an event of a probe CQ, and returns an error if another event precedes it.
func NoEventOf(t testing.TB, channel *verbs.CompChannel, s *Station) error {
	t.Helper()
	probe := s.NewCQOn(channel, 1)
	qp := s.NewQPWith(verbs.QPInitAttr{SendCQ: probe, RecvCQ: probe, Cap: verbs.QPCap{MaxRecvWR: 1}})
	ToInit(t, qp)
	_, err := probe.ReqNotify(verbs.CQNextComp)
	Check(t, err)
	Check(t, qp.PostRecv([]verbs.RecvWR{{}}))
	To(t, qp, verbs.QPStateErr)
	cq, err := channel.Get(Guard(t))
	Check(t, err)
	if err := cq.AckEvents(1); err != nil {
		return err
	}
	if cq != probe {
		return errors.New("an unexpected event")
	}
	Check(t, qp.Close())
	return probe.Close()
}
