// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// groupRun runs one group of the demo: join, send, leave.
type groupRun struct {
	lab       *switchLab
	version   string
	group     netip.Addr
	noMembers netip.Addr // a group without members
	allHosts  netip.Addr // a group that switches flood to all ports
	size      int
	messages  int

	streams    []*stream // one to each attached queue pair
	sent       int
	unexpected int // messages that the outsider received
	flushes    int
}

func newGroupRuns(l *switchLab, size, messages int) []*groupRun {
	a := netip.MustParseAddr
	return []*groupRun{
		{lab: l, version: "IPv4", group: a("239.77.0.7"), noMembers: a("239.77.0.8"), allHosts: a("224.0.0.1"), size: size, messages: messages},
		{lab: l, version: "IPv6", group: a("ff05::77:7"), noMembers: a("ff05::77:8"), allHosts: a("ff02::1"), size: size, messages: messages},
	}
}

func (r *groupRun) run(ctx context.Context) error {
	steps := []func(context.Context) error{r.join, r.awaitSwitch, r.sendAll, r.flush, r.leave}
	if r.lab.network != nil { // there is no switch
		steps = []func(context.Context) error{r.join, r.sendAll, r.leave}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return fmt.Errorf("group %v: %w", r.group, err)
		}
	}
	return nil
}

func (r *groupRun) join(context.Context) error {
	sender, receiver := r.lab.sender.hosts[0], r.lab.receiver
	source, err := sender.source(r.version)
	if err != nil {
		return err
	}
	if err := sender.JoinSendOnly(r.group); err != nil {
		return err
	}
	window, err := groupWindowOf(receiver.hosts[0])
	if err != nil {
		return err
	}
	for _, to := range receiver.hosts {
		if err := to.Join(r.group); err != nil {
			return err
		}
		s := &stream{from: sender, to: to, fromGID: source, toGID: verbs.GIDFromAddr(r.group), size: r.size, messages: r.messages, window: window}
		s.prepare(ud.Group(r.group))
		r.streams = append(r.streams, s)
	}
	return nil
}

// sendOne sends a message without payload.
func (r *groupRun) sendOne(ctx context.Context, group netip.Addr) error {
	from := r.lab.sender.hosts[0]
	if err := from.SendAll(ctx, []ud.Message{{To: ud.Group(group)}}); err != nil {
		return err
	}
	return from.Finish(ctx)
}

// sendAll sends all messages and checks those that arrive at each attached queue pair.
func (r *groupRun) sendAll(ctx context.Context) error {
	for slices.ContainsFunc(r.streams, func(s *stream) bool { return s.done() < s.messages }) {
		if err := r.step(ctx); err != nil {
			return err
		}
	}
	return r.lab.sender.hosts[0].Finish(ctx)
}

// step sends as many messages as the window allows and receives arrived ones.
func (r *groupRun) step(ctx context.Context) error {
	if err := r.send(ctx); err != nil {
		return err
	}
	for _, s := range r.streams {
		if s.done() == s.messages {
			continue
		}
		if err := s.receive(ctx); err != nil {
			return fmt.Errorf("queue pair %v: %w", s.to.QPN(), err)
		}
	}
	var unexpected [card.Batch]ud.Message
	outsider := r.lab.outsider.hosts[0]
	n, err := outsider.Arrived(unexpected[:])
	r.unexpected += n
	outsider.Release(unexpected[:n])
	if err != nil {
		return err
	}
	return r.lab.update()
}

func (r *groupRun) send(ctx context.Context) error {
	n := min(r.messages-r.sent, card.Batch)
	for _, s := range r.streams {
		n = min(n, s.window-s.inFlight())
	}
	first := r.streams[0]
	for i := range n {
		first.write(&first.out[i], uint32(r.sent+i))
		for _, s := range r.streams {
			s.expect(uint32(r.sent + i))
		}
	}
	r.sent += n
	return first.from.SendAll(ctx, first.out[:n])
}

// leave ends both memberships, the send-only one first, so that a leave of the sender would be seen before that of the
// receiver.
func (r *groupRun) leave(ctx context.Context) error {
	if err := r.lab.sender.hosts[0].Leave(r.group); err != nil {
		return err
	}
	for _, s := range r.streams {
		if err := s.to.Leave(r.group); err != nil {
			return err
		}
	}
	if r.lab.network != nil {
		return nil
	}
	t := r.lab.receiver.watch.of(r.group)
	return r.await(ctx, card.StallTimeout, "no leave of the receiver", func() (bool, error) { return t.leaves > 0, nil })
}
