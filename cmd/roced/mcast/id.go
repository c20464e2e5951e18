// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"context"
	"errors"
	"net/netip"

	"github.com/roced/roced/verbs/cm"
)

// membership is the membership of a connection id; zero without one.
type membership struct {
	channel *cm.EventChannel
	id      *cm.ID
}

// joinByID joins with a connection id bound to an address of the group's IP version.
func (m *member) joinByID(ctx context.Context) (err error) {
	o := m.options
	entry, err := m.device.ChooseGID(o.GIDIndex, o.group, m.mgid)
	if err != nil {
		return err
	}
	own := entry.GID.Addr()
	if own.Is6() && own.IsLinkLocalUnicast() {
		own = own.WithZone(m.device.Attr.Name)
	}
	if m.id.channel, err = cm.CreateEventChannel(m.device.Context); err != nil {
		return err
	}
	if m.id.id, err = m.id.channel.CreateID(cm.PortSpaceUDP, nil); err != nil {
		return err
	}
	if err := m.id.join(ctx, own, o); err != nil || o.sendOnly {
		return err
	}
	return m.Attach(o.group)
}

func (m *membership) join(ctx context.Context, own netip.Addr, o *options) error {
	if err := m.id.Bind(netip.AddrPortFrom(own, 0)); err != nil {
		return err
	}
	attr := cm.JoinAttr{Mask: cm.JoinAttrAddress | cm.JoinAttrFlags, Flags: cm.JoinFullMember, Address: o.group}
	if o.sendOnly {
		attr.Flags = cm.JoinSendOnlyFullMember
	}
	if err := m.id.JoinMulticastEx(attr, nil); err != nil {
		return err
	}
	_, err := m.channel.Expect(ctx, cm.EventMulticastJoin)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Close leaves the group.
func (m *membership) Close() (err error) {
	if m.id != nil {
		err = m.id.Close()
	}
	if m.channel != nil {
		err = errors.Join(err, m.channel.Close())
	}
	return err
}
