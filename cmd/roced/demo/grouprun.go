package demo

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// groupRun is one group of the demo: it is joined, sent to, and left.
type groupRun struct {
	lab      *switchLab
	version  string
	group    netip.Addr
	nobodys  netip.Addr // a group without members
	allHosts netip.Addr // a group that switches flood, whoever is in it
	size     int
	messages int

	source     verbs.GIDEntry // the sender's
	sendOnly   *verbs.Membership
	full       *verbs.Membership
	streams    []*stream // one to each attached queue pair
	sent       int
	unexpected int // messages that the outsider got
	flushes    int
}

func newGroupRuns(l *switchLab, size, messages int) []*groupRun {
	a := netip.MustParseAddr
	return []*groupRun{
		{lab: l, version: "IPv4", group: a("239.77.0.7"), nobodys: a("239.77.0.8"), allHosts: a("224.0.0.1"), size: size, messages: messages},
		{lab: l, version: "IPv6", group: a("ff05::77:7"), nobodys: a("ff05::77:8"), allHosts: a("ff02::1"), size: size, messages: messages},
	}
}

func (r *groupRun) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{r.join, r.awaitSwitch, r.sendAll, r.flush, r.leave} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("group %v: %w", r.group, err)
		}
	}
	return nil
}

func (r *groupRun) join(context.Context) (err error) {
	sender, receiver := r.lab.sender, r.lab.receiver
	if r.source, err = sender.hosts[0].source(r.version); err != nil {
		return err
	}
	if r.sendOnly, err = sender.JoinMulticast(r.group, verbs.JoinSendOnlyFullMember); err != nil {
		return err
	}
	if r.full, err = receiver.JoinMulticast(r.group, verbs.JoinFullMember); err != nil {
		return err
	}
	for _, to := range receiver.hosts {
		if err := to.Attach(r.full); err != nil {
			return err
		}
		r.streams = append(r.streams, &stream{
			from: sender.hosts[0], to: to, fromGID: r.source.GID, toGID: r.full.MGID(), size: r.size, messages: r.messages,
		})
	}
	return nil
}

// aim has the sender's messages go to a group.
func (r *groupRun) aim(group netip.Addr) error {
	return r.lab.sender.hosts[0].Aim(r.source.Index, wire.GIDFromAddr(group), verbs.MulticastQPN)
}

func (r *groupRun) sendOne(ctx context.Context, group netip.Addr) error {
	from := r.lab.sender.hosts[0]
	if err := r.aim(group); err != nil {
		return err
	}
	from.Shape(0, verbs.WRSend)
	if err := from.PostSends(1); err != nil {
		return err
	}
	return from.ReapAll(ctx, false)
}

// sendAll sends all messages, and checks what comes to each attached queue pair.
func (r *groupRun) sendAll(ctx context.Context) error {
	if err := r.aim(r.group); err != nil {
		return err
	}
	r.lab.sender.hosts[0].Shape(r.size, verbs.WRSend)
	start := time.Now()
	for _, s := range r.streams {
		s.lastArrival = start
	}
	for r.slowest() < r.messages {
		if err := r.step(ctx); err != nil {
			return err
		}
	}
	return r.lab.sender.hosts[0].ReapAll(ctx, false)
}

// slowest is how many messages all attached queue pairs have got.
func (r *groupRun) slowest() int {
	slow := slices.MinFunc(r.streams, func(a, b *stream) int { return a.received - b.received })
	return slow.received
}

// step sends what the window permits and takes what has arrived.
func (r *groupRun) step(ctx context.Context) error {
	if err := r.send(); err != nil {
		return err
	}
	for _, s := range r.streams {
		if s.received == s.messages {
			continue
		}
		if err := s.take(ctx); err != nil {
			return fmt.Errorf("queue pair %v: %w", s.to.QP.Number(), err)
		}
	}
	n, err := r.lab.outsider.hosts[0].Arrived(r.streams[0].completions[:])
	r.unexpected += n
	if err != nil {
		return err
	}
	return r.lab.look()
}

func (r *groupRun) send() error {
	from := r.lab.sender.hosts[0]
	if err := from.Reap(); err != nil {
		return err
	}
	n := min(window-(r.sent-r.slowest()), r.messages-r.sent, from.Idle(), card.Batch)
	for i := range n {
		payload, wr := from.SendBuffer(i)
		r.streams[0].write(payload, wr, uint32(r.sent+i))
	}
	r.sent += n
	return from.PostSends(n)
}

// leave ends both memberships, the send-only one first: by the time the receiver's
// leave is seen, the sender's would be.
func (r *groupRun) leave(ctx context.Context) error {
	if err := r.sendOnly.Close(); err != nil {
		return err
	}
	for _, s := range r.streams {
		if err := s.to.Detach(r.full); err != nil {
			return err
		}
	}
	if err := r.full.Close(); err != nil {
		return err
	}
	t := r.lab.receiver.watch.of(r.group)
	return r.await(ctx, card.StallTimeout, "the receiver's leave is not seen", func() (bool, error) { return t.leaves > 0, nil })
}
