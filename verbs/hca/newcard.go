// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"errors"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/hca/port"
)

// newCard starts a card on a host. The card owns the host, and closes it if newCard fails.
func newCard(on network.Host, o options) (*Card, error) {
	links, err := on.Links(max(o.workers, 1))
	if err != nil {
		return nil, errors.Join(err, on.Link().Close(), on.Close())
	}
	card := &Card{
		device: device{
			life: newLife(), host: on, port: port.New(on, o.mtu), faults: faults{log: o.log}, log: o.log,
			inline: o.inline, marks: o.congestion == CongestionMark,
		},
		qps: handles.NewNumbers[qp](), srqs: handles.NewNumbers[srq](), domains: domains{map[domainKey]*domain{}},
	}
	card.follower = follower{
		device: &card.device, qps: card.qps, pendingChanges: newPendingChanges(), refused: make(chan struct{}, 1),
		report: card.report, fail: card.fail, close: card.Close,
	}
	card.engine, err = datapath.NewWorkers(datapath.Config{
		MTU: wire.MTU256, VLAN: on.VLAN(), Spin: o.spin, Alone: !o.inline, Congestion: o.control(), Ahead: o.ahead(),
		NoteRefused: card.follower.noteRefused, NoteFault: card.noteFault,
	}, links)
	if err != nil {
		return nil, errors.Join(err, on.Close())
	}
	card.groups = groupTable{mcast.NewTable[*datapath.QP](groupLimits), card.engine}
	on.Start(card.engine)
	card.paths = paths.NewTable(paths.Config{Host: on, Engine: card.engine, Name: card.Name, Log: card.log, Kept: o.neighbours})
	card.manager = ids.NewManager(ids.Config{
		Card: card.port, Ended: card.life.done, Paths: card.paths, Ports: ids.TakePorts(on.Namespace()), Log: card.log,
		NoteFault: func(cause error) { card.faults.add(cause, "device", card.Name(), "in", "connection management") },
	})
	if err := card.open(); err != nil {
		return nil, errors.Join(err, card.Close())
	}
	card.run(o.worker)
	return card, nil
}

// open creates the card's sessions, and reads the host's state for the first time.
func (card *Card) open() (err error) {
	if card.session, err = card.NewSession(SessionConfig{}); err != nil {
		return err
	}
	card.program = card.session
	if err := card.follower.firstLook(); err != nil {
		return err
	}
	return card.manager.Open(card.openOwn)
}

// openOwn creates the card's own session, for QP 1.
func (card *Card) openOwn(wake func()) (own ids.CardSession, err error) {
	config := SessionConfig{Wake: func(uint64) { wake() }, Privileged: func() bool { return true }}
	s, err := card.newSession(config, true)
	if err != nil {
		return own, err
	}
	card.locked(func() { card.own = s })
	return ids.CardSession{Provider: s, Settle: func(timeout time.Duration) { s.engine().Settle(s.entry, timeout) }}, nil
}

// run starts the card's goroutines, and its worker if requested. A panic in one of them fails the card, since it cannot
// follow its host any more.
func (card *Card) run(worker bool) {
	if worker {
		card.engine.Start()
	}
	card.host.Follow(&card.follower)
	for _, run := range []func(){card.follower.keepUp, card.follower.watch, card.manager.Run, card.host.Listen} {
		card.life.work.Go(func() {
			if f := fault.Contain(run); f != nil {
				card.faults.add(f, "device", card.Name())
				card.fail(f)
			}
		})
	}
}
