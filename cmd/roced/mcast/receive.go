package mcast

import (
	"context"

	"github.com/roced/roced/verbs/ud"
)

// receiveAll prints what comes.
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
		if err := m.take(n); err != nil {
			return err
		}
	}
	return nil
}

// take counts, prints and releases n received messages.
func (m *member) take(n int) error {
	defer m.Release(m.arrived[:n])
	for i := range m.arrived[:n] {
		if err := m.tell(&m.arrived[i]); err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	return m.out.Flush()
}

// tell counts a message, and prints it unless --quiet is given.
func (m *member) tell(came *ud.Message) error {
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

// takeArrived takes what has come, without waiting, until ctx is done: others may send
// faster than it takes.
func (m *member) takeArrived(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := m.Arrived(m.arrived[:])
		if err != nil || n == 0 {
			return err
		}
		if err := m.take(n); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
