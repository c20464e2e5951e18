// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"bufio"
	"context"
	"errors"
	"net/netip"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// memberDepth is the capacity of the send and receive queues, in messages.
const memberDepth = 1024

// member is a queue pair that is a member of a group.
type member struct {
	*card.Endpoint
	device   *card.Device
	options  *options
	mgid     verbs.GID // the group
	source   verbs.GID // to send from
	out      *bufio.Writer
	before   []card.Counter
	sent     uint64
	received uint64
	bytes    uint64 // of payload, received
	own      uint64 // of received: own messages
	id       membership
	messages [card.Batch]ud.Message // to be sent
	arrived  [card.Batch]ud.Message
}

// runMember joins the group and sends or receives. It prints a summary even after an error.
func runMember(ctx context.Context, d *card.Device, o *options) (err error) {
	if o.send {
		if err := d.CheckSize(o.size); err != nil {
			return err
		}
	}
	m := &member{device: d, options: o, mgid: verbs.GIDFromAddr(o.group), out: bufio.NewWriter(o.out)}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := m.open(ctx); err != nil {
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
		err = nil // the flags request to run until Ctrl-C
	}
	return errors.Join(err, m.printSummary())
}

// open joins before it checks the source address, so that the error of a join takes precedence.
func (m *member) open(ctx context.Context) (err error) {
	o := m.options
	source, unknown := m.chooseSource()
	m.Endpoint, err = card.OpenEndpoint(m.device, ud.Options{
		QKey: verbs.QKey(o.qkey), ZeroQKey: true, RecvDepth: memberDepth, SendDepth: memberDepth, Source: source, NoLoopback: !o.loopback,
	})
	if err != nil {
		return err
	}
	if m.before, err = m.device.Counters(); err != nil {
		return err
	}
	if err := m.join(ctx); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	return m.prepare(ctx)
}

// join makes the host a member and attaches the endpoint unless it is send-only.
func (m *member) join(ctx context.Context) error {
	switch o := m.options; {
	case o.byID:
		return m.joinByID(ctx)
	case o.sendOnly:
		return m.JoinSendOnly(o.group)
	default:
		return m.Join(o.group)
	}
}

// chooseSource returns the source address, of the group's IP version.
func (m *member) chooseSource() (netip.Addr, error) {
	o := m.options
	if !o.send {
		return netip.Addr{}, nil
	}
	source, err := m.device.ChooseGID(o.GIDIndex, o.group, m.mgid)
	if err != nil {
		return netip.Addr{}, err
	}
	m.source = source.GID
	return source.GID.Addr(), nil
}

// prepare creates the messages, which are sent repeatedly.
func (m *member) prepare(ctx context.Context) error {
	o := m.options
	if !o.send {
		return nil
	}
	to, data := ud.Addr{GID: m.mgid, QPN: verbs.MulticastQPN}, make([]byte, o.size)
	imm, has := o.immediate.of(m.QPN())
	for i := range m.messages {
		m.messages[i] = ud.Message{To: to, Data: data, Imm: imm, HasImm: has}
	}
	return m.Aim(ctx, to)
}

// Close leaves the group.
func (m *member) Close() error {
	if m.Endpoint == nil {
		return nil
	}
	return errors.Join(m.Endpoint.Close(), m.id.Close())
}
