package mcast

import (
	"context"

	"github.com/roced/roced/verbs"
)

// receiveAll prints what comes.
func (m *member) receiveAll(ctx context.Context) error {
	count := uint64(m.options.count)
	for count == 0 || m.received < count {
		wanted := len(m.completions)
		if count > 0 {
			wanted = int(min(uint64(wanted), count-m.received))
		}
		n, err := m.Receive(ctx, true, m.completions[:wanted])
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
	return m.PostRecvs(n)
}

// tell counts a message, and prints it if that was asked for.
func (m *member) tell(wc *verbs.WC) error {
	grh, payload := wc.Payload(m.RecvBuffer(wc))
	m.received++
	m.bytes += uint64(len(payload))
	if m.options.send && wc.SrcQP == m.QP.Number() && grh.SGID() == m.source {
		m.own++
	}
	if m.options.quiet {
		return nil
	}
	t := newMessage(wc, grh, payload)
	return m.print(t.String(), t)
}

// takeArrived takes what has come, without waiting, until ctx is done: others may send
// faster than it takes.
func (m *member) takeArrived(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := m.Arrived(m.completions[:])
		if err := m.takeBefore(n, err); err != nil || n == 0 {
			return err
		}
	}
	return context.Cause(ctx)
}
