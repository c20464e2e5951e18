package mcast

import (
	"bufio"
	"context"
	"errors"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
)

// memberDepth is how many messages a queue pair of mcast can hold each way.
const memberDepth = 1024

// member is a queue pair that belongs to a group: mcast's.
type member struct {
	*card.Endpoint
	device      *card.Device
	options     *options
	membership  *verbs.Membership
	source      verbs.GID // to send from
	out         *bufio.Writer
	before      []card.Counter
	sent        uint64
	received    uint64
	bytes       uint64 // of payload, received
	own         uint64 // of received: what it sent itself
	completions [card.Batch]verbs.WC
}

// runMember is a member until all is done that was asked for, and prints a summary,
// also if that was not all.
func runMember(ctx context.Context, d *card.Device, o *options) (err error) {
	if o.send {
		if err := d.CheckSize(o.size); err != nil {
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
	m.Endpoint, err = card.NewEndpoint(m.device, card.EndpointAttr{
		Depth: memberDepth, Size: m.device.MTU, QKey: verbs.QKey(o.qkey), BlockSelf: !o.loopback,
	})
	if err != nil {
		return err
	}
	if o.send {
		if err := m.aimAtGroup(); err != nil {
			return err
		}
	}
	if m.before, err = m.device.Counters(); err != nil || o.sendOnly {
		return err
	}
	return m.Attach(m.membership)
}

// aimAtGroup has all sends go to the group, from an address of its IP version.
func (m *member) aimAtGroup() error {
	o, mgid := m.options, m.membership.MGID()
	source, err := m.device.ChooseGID(o.GIDIndex, o.group, mgid)
	if err != nil {
		return err
	}
	m.source = source.GID
	if err := m.Aim(source.Index, mgid, verbs.MulticastQPN); err != nil {
		return err
	}
	opcode, imm := o.immediate.operation(m.QP.Number())
	m.Shape(o.size, opcode)
	m.SetImmediate(imm)
	return nil
}

// Close detaches, and leaves the group.
func (m *member) Close() (err error) {
	if m.Endpoint != nil {
		err = m.Endpoint.Close()
	}
	if m.membership != nil {
		err = errors.Join(err, m.membership.Close())
	}
	return err
}
