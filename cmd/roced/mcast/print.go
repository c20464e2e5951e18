// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/mcast"
)

// print prints a line as text or JSON.
func (m *member) print(text string, value any) error {
	if !m.options.json {
		_, err := fmt.Fprintln(m.out, text)
		return err
	}
	return json.NewEncoder(m.out).Encode(value)
}

func (m *member) printStart() error {
	o, mgid := m.options, m.mgid
	s := joined{
		Group: o.group.String(), MGID: mgid.String(), MAC: mcast.MAC(mgid).String(), Member: "full",
		Side: m.device.Side(m.address()), QPN: uint32(m.QPN()), QKey: uint32(o.qkey), send: o.send,
	}
	if o.sendOnly {
		s.Member = "send-only"
	}
	err := m.print(s.String(), struct {
		Start joined `json:"start"`
	}{s})
	return errors.Join(err, m.out.Flush())
}

// address returns the source address of the member, or the one that a receiver would use; empty if the
// interface has no address of the group's IP version.
func (m *member) address() string {
	if m.options.send {
		return m.source.Addr().String()
	}
	own, err := m.device.ChooseGID(m.options.GIDIndex, netip.Addr{}, m.mgid)
	if err != nil {
		return ""
	}
	return own.GID.Addr().String()
}

func (m *member) printSummary() error {
	after, err := m.device.Counters()
	if err != nil {
		return err
	}
	changed := card.Since(m.before, after)
	s := totals{
		Group: m.options.group.String(), Sent: m.sent, Size: m.options.size, Received: m.received, Own: m.own, Bytes: m.bytes,
		Drops: card.Losses(changed), Link: card.LinkLosses(changed),
	}
	if err := m.print(s.String(), struct {
		Summary totals `json:"summary"`
	}{s}); err != nil {
		return err
	}
	return m.out.Flush()
}
