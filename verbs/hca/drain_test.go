// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/roced/roced/verbs"
)

// Posted requests are sent when the card, or the queue pair, is closed immediately afterwards.
func TestPostThenClose(t *testing.T) {
	const messages = depth
	for name, closer := range map[string]func(s *station) error{
		"context":    func(s *station) error { return s.ctx.Close() },
		"queue pair": func(s *station) error { return s.qp.Close() },
		"drain":      func(s *station) error { return s.qp.Drain(guard(s)) },
	} {
		for mode, options := range map[string][]Option{"worker": {WithoutInline()}, "inline": nil, "no worker": {WithoutWorker()}} {
			t.Run(name+", "+mode, func(t *testing.T) {
				w := newWirePair(t, options...)
				a, b := w.a, w.b
				ah := a.ah("10.0.0.2")
				for i := range messages {
					b.receive(i)
				}
				var list []verbs.SendWR
				for i := range uint64(messages) {
					wr := a.send(i, ah, b, a.piece(0, 10))
					wr.Flags = 0
					list = append(list, wr)
				}
				a.device.engine.Do(func() { // so that no round runs meanwhile
					check(t, a.qp.PostSend(list))
				})
				check(t, closer(a))
				eventually(t, "all messages", func() bool {
					b.device.Progress()
					return b.device.engine.Counters().Delivered == messages
				})
			})
		}
	}
}

// On a link that accepts no frames, Drain ends with its context.
func TestDrainGivesUp(t *testing.T) {
	w := newStillPair(t)
	a := w.a
	big := a.newQP(verbs.QPCap{MaxSendWR: 1024, MaxRecvWR: 1})
	check(t, big.Activate(testQKey))
	wr := a.send(1, a.ah("10.0.0.2"), w.b)
	wr.Flags = 0
	list := make([]verbs.SendWR, 1024)
	for i := range list {
		list[i] = wr
	}
	check(t, big.PostSend(list))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := big.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("drain of a full wire: %v", err)
	}
	refused(t, big.PostSend(list), verbs.ErrQueueFull, "Drain")
	check(t, w.b.device.Close()) // the wire has no other end: sent packets are lost
	check(t, big.Drain(guard(t)))
	check(t, big.PostSend(list))
}

// Statistics are one list, can be printed, and are available after Close.
func TestStatisticsAfterClose(t *testing.T) {
	w := newStillPair(t)
	a := w.a
	a.post(a.send(1, a.ah("10.0.0.2"), w.b, a.piece(0, 10)))
	w.run()
	before, err := a.device.Statistics()
	check(t, err)
	names := map[string]bool{}
	for _, c := range before.All() {
		if names[c.Place+c.Name] {
			t.Errorf("%s %s is listed twice", c.Place, c.Name)
		}
		names[c.Place+c.Name] = true
	}
	if text := before.String(); text != "engine sent 1, engine sent_bytes 10" {
		t.Errorf("%q", text)
	}
	check(t, a.device.Close())
	after, err := a.device.Statistics()
	check(t, err)
	if !reflect.DeepEqual(after, before) {
		t.Errorf("after Close %v, before %v", after, before)
	}
	if text := (Statistics{}).String(); text != "all counters are 0" {
		t.Errorf("%q", text)
	}
}
