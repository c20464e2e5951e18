// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"io"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/provider"
)

// When the card fails, a program gets the events of the flushed requests and then the cause; channels and CQs can be
// closed.
func TestChannelOfAFailedCard(t *testing.T) {
	w := newWirePair(t)
	channel, err := w.a.ctx.CreateCompChannel()
	check(t, err)
	cq, err := w.a.ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 8, Channel: channel})
	check(t, err)
	qp, err := w.a.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxRecvWR: 1}})
	check(t, err)
	check(t, qp.Activate(0))
	check(t, qp.PostRecv([]verbs.RecvWR{{}}))
	_, err = cq.ReqNotify(verbs.CQSolicited)
	check(t, err)
	w.a.device.fail(network.ErrGone)
	got, err := channel.Get(guard(t))
	check(t, err)
	if got != cq {
		t.Error("got another event, want the CQ's")
	}
	_, err = channel.Get(guard(t))
	refused(t, err, verbs.ErrDeviceFatal)
	check(t, cq.AckEvents(1))
	check(t, errors.Join(qp.Close(), cq.Close(), channel.Close()))
}

// A program that has closed its end, or does not read, affects no other; it reads the end of the stream when the
// session ends.
func TestChannelThatNobodyReads(t *testing.T) {
	w := newWirePair(t)
	session, err := w.a.device.NewSession(SessionConfig{Limits: Limits{CompChannels: 2}})
	check(t, err)
	deaf, err := session.channels.create()
	check(t, err)
	check(t, deaf.Events.Close())
	silent, err := session.channels.create()
	check(t, err)
	_, err = session.channels.create()
	refused(t, err, verbs.ErrLimit, "completion channel")
	for _, channel := range []provider.Handle{deaf.Channel, silent.Channel} {
		grant, err := session.cqs.create(provider.CreateCQRequest{Entries: 8, EventID: 7, Channel: channel})
		check(t, err)
		c, err := session.cqs.Get(grant.CQ)
		check(t, err)
		const records = 10_000 // more than fit
		w.a.device.engine.Do(func() {
			for range records {
				c.entry.Notify()
			}
		})
		if channel == deaf.Channel && c.channel.owed.Load() != 0 {
			t.Errorf("%d records are owed, want 0", c.channel.owed.Load())
		}
	}
	w.b.receive(1)
	w.a.post(w.a.send(1, w.a.ah("10.0.0.2"), w.b, w.a.piece(0, 3)))
	w.b.wait(1)
	check(t, session.Close())
	all, err := io.ReadAll(silent.Events)
	if err != nil || len(all) == 0 || len(all)%8 != 0 {
		t.Errorf("read %d bytes, %v", len(all), err)
	}
	check(t, silent.Events.Close())
}

// A channel leaves nothing behind when its session ends, or when only its context is closed: this package's TestMain
// counts descriptors.
func TestChannelsEndWithTheContext(t *testing.T) {
	w := newWirePair(t)
	var channels []*verbs.CompChannel
	for range 10 {
		channel, err := w.a.ctx.CreateCompChannel()
		check(t, err)
		channels = append(channels, channel)
	}
	check(t, w.a.ctx.Close())
	for _, channel := range channels {
		_, err := channel.SyscallConn()
		refused(t, err, verbs.ErrClosed)
		refused(t, channel.Close(), verbs.ErrClosed)
	}
}
