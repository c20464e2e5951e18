package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
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
		if err := to.attach(r.full); err != nil {
			return err
		}
		r.streams = append(r.streams, &stream{
			from: sender.hosts[0], to: to, fromGID: r.source.GID, toGID: r.full.MGID(), size: r.size, messages: r.messages,
		})
	}
	return nil
}

// switchTimeout is how long a new bridge may take to filter: it floods until answers to
// its first query could have come.
const switchTimeout = 20 * time.Second

// awaitSwitch waits until the switch knows the receiver's port, and keeps from others
// what they have not asked for.
func (r *groupRun) awaitSwitch(ctx context.Context) error {
	member := lab.MDBEntry{Port: r.lab.receiver.port, Group: r.group}
	err := r.await(ctx, stallTimeout, "the switch does not know the receiver", func() (bool, error) {
		list, err := r.lab.bridge.MDB()
		return slices.Contains(list, member), err
	})
	if err != nil {
		return err
	}
	flooded := r.lab.outsider.watch.of(r.nobodys)
	return r.await(ctx, switchTimeout, "the switch does not snoop", func() (bool, error) {
		before := flooded.messages
		if err := r.sendOne(ctx, r.nobodys); err != nil {
			return false, err
		}
		err := r.flush(ctx)
		return flooded.messages == before, err
	})
}

// await is poll for what the watches see.
func (r *groupRun) await(ctx context.Context, timeout time.Duration, failure string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%s: not within %v: %w", failure, timeout, unix.ETIMEDOUT))
	defer cancel()
	return poll(ctx, func() (bool, error) {
		if err := r.lab.look(); err != nil {
			return false, err
		}
		return is()
	})
}

// flush waits until what was sent has passed every port that it passes: a message
// to all hosts follows it.
func (r *groupRun) flush(ctx context.Context) error {
	if err := r.sendOne(ctx, r.allHosts); err != nil {
		return err
	}
	r.flushes++
	return r.await(ctx, stallTimeout, "a message to all hosts does not come to all", func() (bool, error) {
		return !slices.ContainsFunc(r.lab.stations(), func(s *station) bool {
			return s.watch.of(r.allHosts).messages < r.flushes
		}), nil
	})
}

// aim has the sender's messages go to a group.
func (r *groupRun) aim(group netip.Addr) error {
	return r.lab.sender.hosts[0].aim(r.source.Index, wire.GIDFromAddr(group), verbs.MulticastQPN)
}

func (r *groupRun) sendOne(ctx context.Context, group netip.Addr) error {
	from := r.lab.sender.hosts[0]
	if err := r.aim(group); err != nil {
		return err
	}
	from.shape(0, verbs.WRSend)
	if err := from.postSends(1); err != nil {
		return err
	}
	return from.reapAll(ctx, false)
}

// sendAll sends all messages, and checks what comes to each attached queue pair.
func (r *groupRun) sendAll(ctx context.Context) error {
	if err := r.aim(r.group); err != nil {
		return err
	}
	r.lab.sender.hosts[0].shape(r.size, verbs.WRSend)
	start := time.Now()
	for _, s := range r.streams {
		s.lastArrival = start
	}
	for r.slowest() < r.messages {
		if err := r.step(ctx); err != nil {
			return err
		}
	}
	return r.lab.sender.hosts[0].reapAll(ctx, false)
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
			return fmt.Errorf("queue pair %v: %w", s.to.qp.Number(), err)
		}
	}
	n, err := r.lab.outsider.hosts[0].arrived(r.streams[0].completions[:])
	r.unexpected += n
	if err != nil {
		return err
	}
	return r.lab.look()
}

func (r *groupRun) send() error {
	from := r.lab.sender.hosts[0]
	if err := from.reap(); err != nil {
		return err
	}
	n := min(window-(r.sent-r.slowest()), r.messages-r.sent, from.idle(), batch)
	for i := range n {
		payload, wr := from.sendBuffer(i)
		r.streams[0].write(payload, wr, uint32(r.sent+i))
	}
	r.sent += n
	return from.postSends(n)
}

// leave ends both memberships, the send-only one first: by the time the receiver's
// leave is seen, the sender's would be.
func (r *groupRun) leave(ctx context.Context) error {
	if err := r.sendOnly.Close(); err != nil {
		return err
	}
	for _, s := range r.streams {
		if err := s.to.detach(r.full); err != nil {
			return err
		}
	}
	if err := r.full.Close(); err != nil {
		return err
	}
	t := r.lab.receiver.watch.of(r.group)
	return r.await(ctx, stallTimeout, "the receiver's leave is not seen", func() (bool, error) { return t.leaves > 0, nil })
}

// check insists on what the table shows.
func (r *groupRun) check() error {
	sender, receiver, outsider := *r.lab.sender.watch.of(r.group), *r.lab.receiver.watch.of(r.group), *r.lab.outsider.watch.of(r.group)
	switch {
	case sender.reports+sender.leaves > 0:
		return fmt.Errorf("group %v: the send-only member sent %s", r.group, sender.membership())
	case receiver.reports == 0 || receiver.leaves == 0:
		return fmt.Errorf("group %v: the full member sent %s", r.group, receiver.membership())
	case outsider != traffic{} || r.unexpected > 0:
		return fmt.Errorf("group %v: the host that is not in it got %d messages on its wire and %d in its queue pair, and sent %s",
			r.group, outsider.messages, r.unexpected, outsider.membership())
	case sender.messages != r.messages || receiver.messages != r.messages:
		return fmt.Errorf("group %v: %d messages on the sender's wire and %d on the receiver's, not %d", r.group, sender.messages, receiver.messages, r.messages)
	}
	return nil
}
