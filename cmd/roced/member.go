package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// memberDepth is how many messages a queue pair of mcast can hold each way.
const memberDepth = 1024

// member is a queue pair that belongs to a group: mcast's.
type member struct {
	*endpoint
	device      *device
	options     *mcastOptions
	membership  *verbs.Membership
	source      verbs.GID // to send from
	out         *bufio.Writer
	before      []counter
	sent        uint64
	received    uint64
	bytes       uint64 // of payload, received
	own         uint64 // of received: what it sent itself
	completions [batch]verbs.WC
}

// runMember is a member until all is done that was asked for, and prints a summary,
// also if that was not all.
func runMember(ctx context.Context, d *device, o *mcastOptions) (err error) {
	if o.send {
		if err := d.checkSize(o.size); err != nil {
			return err
		}
	}
	m := &member{device: d, options: o, out: bufio.NewWriter(o.out)}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := m.open(); err != nil {
		return err
	}
	if err := m.printStart(); err != nil {
		return err
	}
	work := m.receiveAll
	if o.send {
		work = m.sendAll
	}
	err = work(ctx)
	if o.count == 0 && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = nil // no other end was asked for
	}
	return errors.Join(err, m.printSummary())
}

// open joins first: a send-only member that is refused has done nothing.
func (m *member) open() (err error) {
	o := m.options
	flags := verbs.JoinFullMember
	if o.sendOnly {
		flags = verbs.JoinSendOnlyFullMember
	}
	if m.membership, err = m.device.JoinMulticast(o.group, flags); err != nil {
		return err
	}
	m.endpoint, err = newEndpoint(m.device, endpointAttr{
		depth: memberDepth, size: m.device.mtu, qkey: verbs.QKey(o.qkey), blockSelf: !o.loopback,
	})
	if err != nil {
		return err
	}
	if o.send {
		if err := m.aimAtGroup(); err != nil {
			return err
		}
	}
	if m.before, err = m.device.counters(); err != nil || o.sendOnly {
		return err
	}
	return m.attach(m.membership)
}

// aimAtGroup has all sends go to the group, from an address of its IP version.
func (m *member) aimAtGroup() error {
	o, mgid := m.options, m.membership.MGID()
	source, err := m.device.chooseGID(o.gidIndex, o.group, mgid)
	if err != nil {
		return err
	}
	m.source = source.GID
	if err := m.aim(source.Index, mgid, verbs.MulticastQPN); err != nil {
		return err
	}
	opcode, imm := o.immediate.operation(m.qp.Number())
	m.shape(o.size, opcode)
	for i := range m.sends {
		m.sends[i].ImmData = imm
	}
	return nil
}

// Close detaches, and leaves the group.
func (m *member) Close() (err error) {
	if m.endpoint != nil {
		err = m.endpoint.Close()
	}
	if m.membership != nil {
		err = errors.Join(err, m.membership.Close())
	}
	return err
}

// receiveAll prints what comes.
func (m *member) receiveAll(ctx context.Context) error {
	count := uint64(m.options.count)
	for count == 0 || m.received < count {
		wanted := len(m.completions)
		if count > 0 {
			wanted = int(min(uint64(wanted), count-m.received))
		}
		n, err := m.receive(ctx, true, m.completions[:wanted])
		if err := m.takeBefore(n, err); err != nil {
			return err
		}
	}
	return nil
}

// takeBefore tells of messages that have come before receiving failed, if it did. Then
// that is the error: to post receives again fails too.
func (m *member) takeBefore(n int, failed error) error {
	err := m.take(n)
	if failed != nil {
		return failed
	}
	return err
}

// take tells of messages that have come.
func (m *member) take(n int) error {
	if n == 0 {
		return nil
	}
	for i := range m.completions[:n] {
		if err := m.tell(&m.completions[i]); err != nil {
			return err
		}
	}
	if err := m.out.Flush(); err != nil {
		return err
	}
	return m.postRecvs(n)
}

// sendAll sends, and waits until all that was begun has been sent.
func (m *member) sendAll(ctx context.Context) error {
	failed := m.sendPaced(ctx)
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), stallTimeout, fmt.Errorf("sends do not complete: %w", unix.ETIMEDOUT))
	defer cancel()
	for m.sending > 0 {
		if err := m.reapSome(ctx, true); err != nil {
			return errors.Join(failed, err)
		}
	}
	return errors.Join(failed, m.takeArrived(ctx)) // the own ones come before their sends complete
}

// sendPaced sends at the rate that was asked for, and tells of what comes meanwhile.
func (m *member) sendPaced(ctx context.Context) error {
	start := time.Now()
	for more := true; more; {
		n := m.due(time.Since(start))
		if err := m.postSends(n); err != nil {
			return err
		}
		m.sent += uint64(n)
		more = m.options.count == 0 || m.sent < uint64(m.options.count)
		if err := m.rest(ctx, start, n, more); err != nil {
			return err
		}
	}
	return nil
}

// due is how many messages to send now.
func (m *member) due(elapsed time.Duration) int {
	n := uint64(min(m.idle(), batch))
	if m.options.count > 0 {
		n = min(n, uint64(m.options.count)-m.sent)
	}
	if m.options.rate > 0 {
		n = min(n, m.dueBy(elapsed)-m.sent)
	}
	return int(n)
}

// dueBy is how many messages are to be sent by a time after the first.
func (m *member) dueBy(elapsed time.Duration) uint64 {
	return uint64(elapsed.Seconds()*float64(m.options.rate)) + 1
}

// rest takes what has come, after n messages were sent, and waits until more can be sent.
func (m *member) rest(ctx context.Context, start time.Time, n int, more bool) error {
	if err := errors.Join(m.reap(), m.takeArrived(ctx)); err != nil {
		return err
	}
	switch {
	case !more:
		return nil
	case m.idle() == 0:
		return m.reapSome(ctx, true)
	case m.options.rate > 0 && n < batch:
		return m.restUntil(ctx, start.Add(m.dueAt(m.sent)))
	}
	return nil
}

// dueAt is when a message is to be sent, after the first, which has number 0.
func (m *member) dueAt(number uint64) time.Duration {
	return time.Duration(float64(number) / float64(m.options.rate) * float64(time.Second))
}

// restUntil takes what comes until a time.
func (m *member) restUntil(ctx context.Context, next time.Time) error {
	ctx, cancel := context.WithDeadlineCause(ctx, next, errDue)
	defer cancel()
	for {
		n, err := m.receive(ctx, true, m.completions[:])
		due := errors.Is(err, errDue)
		if due {
			err = nil
		}
		if err := m.takeBefore(n, err); err != nil || due {
			return err
		}
	}
}

// errDue is not an error of the run.
var errDue = errors.New("the next message is due")

// takeArrived takes what has come, without waiting, until ctx is done: others may send
// faster than it takes.
func (m *member) takeArrived(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := m.arrived(m.completions[:])
		if err := m.takeBefore(n, err); err != nil || n == 0 {
			return err
		}
	}
	return context.Cause(ctx)
}
