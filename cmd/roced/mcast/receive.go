// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"context"

	"github.com/roced/roced/verbs/ud"
)

// receiveAll receives and prints messages.
func (m *member) receiveAll(ctx context.Context) error {
	count := uint64(m.options.count)
	for count == 0 || m.received < count {
		wanted := len(m.arrived)
		if count > 0 {
			wanted = int(min(uint64(wanted), count-m.received))
		}
		n, err := m.Receive(ctx, true, m.arrived[:wanted])
		if err != nil {
			return err
		}
		if err := m.consume(n); err != nil {
			return err
		}
	}
	return nil
}

// consume counts, prints and releases n received messages.
func (m *member) consume(n int) error {
	defer m.Release(m.arrived[:n])
	for i := range m.arrived[:n] {
		if err := m.report(&m.arrived[i]); err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	return m.out.Flush()
}

// report counts a message and prints it unless --quiet is given.
func (m *member) report(came *ud.Message) error {
	m.received++
	m.bytes += uint64(len(came.Data))
	if m.options.send && came.From.QPN == m.QPN() && came.From.GID == m.source {
		m.own++
	}
	if m.options.quiet {
		return nil
	}
	t := newMessage(came)
	return m.print(t.String(), t)
}

// drain consumes the messages received so far without waiting, until ctx is done: other members may send faster than it
// consumes.
func (m *member) drain(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := m.Arrived(m.arrived[:])
		if err != nil || n == 0 {
			return err
		}
		if err := m.consume(n); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
