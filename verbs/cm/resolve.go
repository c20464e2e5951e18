// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Bind binds the id to an address of a device, and so to the device; or to 0.0.0.0 or ::, all addresses of all its
// devices (rdma_bind_addr). Port 0 selects a free port. A link-local address needs its interface as zone. 0.0.0.0 means
// IPv4 only; :: means both versions or, if net.ipv6.bindv6only is set, IPv6 only; SetAFOnly overrides that.
//
// verbs.ErrAddrNotAvail for an address that no device has, or whose port another id has for all addresses;
// verbs.ErrAddrInUse; verbs.ErrPermission (EACCES) for a port below net.ipv4.ip_unprivileged_port_start without
// CAP_NET_BIND_SERVICE or, over the service, uid 0.
func (i *ID) Bind(to netip.AddrPort) error {
	if i == nil {
		return fmt.Errorf("bind: %w", errNil)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var err error
	switch {
	case len(i.parts) == 0:
		err = fmt.Errorf("%w: the id", verbs.ErrObjectClosed)
	case to.Addr().Unmap().IsUnspecified():
		err = i.bindAll(to)
	default:
		err = i.bindOne(to)
		i.bound.Store(err == nil)
	}
	if err != nil {
		return fmt.Errorf("bind id to %v: %w", to, err)
	}
	return nil
}

// ResolveAddr selects the device and the source address by the host's route to a destination, and resolves the next
// hop's hardware address (rdma_resolve_addr). The destination may be a group: then the host's route must use a device,
// or source must be an address of one. A destination of 0.0.0.0 or :: is the device itself. An unbound id is bound, to
// source if it is valid.
//
// EventAddrResolved or EventAddrError follows, within the timeout. A missing route is reported immediately:
// verbs.ErrUnreachable.
func (i *ID) ResolveAddr(source, dest netip.AddrPort, timeout time.Duration) error {
	if i == nil {
		return fmt.Errorf("resolve address: %w", errNil)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.resolve(source, dest, timeout); err != nil {
		return fmt.Errorf("resolve address %v: %w", dest, err)
	}
	return nil
}

func (i *ID) resolve(source, dest netip.AddrPort, timeout time.Duration) error {
	p, err := i.choose(source.Addr(), dest.Addr())
	if err != nil {
		return err
	}
	err = provider.Exec(p.provider, provider.ResolveIDAddr, provider.ResolveIDAddrRequest{ID: p.handle, Source: source, Dest: dest, Timeout: timeout})
	if err == nil {
		i.settle(p)
		i.bound.Store(true)
	}
	return err
}

// ResolveRoute resolves the route to the destination (rdma_resolve_route). On Ethernet it is known with the address:
// EventRouteResolved follows immediately.
func (i *ID) ResolveRoute() error {
	if i == nil {
		return fmt.Errorf("resolve route: %w", errNil)
	}
	return i.do("resolve route", func(p part) error {
		return provider.Exec(p.provider, provider.ResolveIDRoute, provider.ResolveIDRouteRequest{ID: p.handle})
	})
}

// SetIBPath sets the route to the destination, instead of ResolveRoute (rdma_set_option, RDMA_OPTION_IB_PATH): that of
// Route with another service level, traffic class, hop limit or flow label. EventRouteResolved follows. The address
// must be resolved, and the path must be between the id's two addresses (verbs.ErrInvalid).
func (i *ID) SetIBPath(path verbs.AHAttr) error {
	if i == nil {
		return fmt.Errorf("set the path: %w", errNil)
	}
	return i.do("set the path", func(p part) error {
		return provider.Exec(p.provider, provider.SetIDPath, provider.SetIDPathRequest{ID: p.handle, Path: path})
	})
}

// migrating is held while an id is migrated.
var migrating = make(chan struct{}, 1)

// Migrate moves the id, with its unread events, to another channel of the same devices (rdma_migrate_id). Neither
// channel may belong to an id with a handler.
func (i *ID) Migrate(to *EventChannel) error {
	if i == nil {
		return fmt.Errorf("migrate id: %w", errNil)
	}
	migrating <- struct{}{}
	defer func() { <-migrating }()
	i.mu.Lock()
	from := i.channel
	i.mu.Unlock()
	if to == nil || to.handler != nil || from.handler != nil {
		return fmt.Errorf("migrate id: %w: the channel is nil, or belongs to an id with a handler", verbs.ErrInvalid)
	}
	if to == from {
		return nil
	}
	for _, c := range []*EventChannel{from, to} {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.migrate(to); err != nil {
		return fmt.Errorf("migrate id: %w", err)
	}
	return nil
}

// migrate moves the id. The caller holds all locks.
func (i *ID) migrate(to *EventChannel) error {
	if to.closed || len(i.parts) == 0 {
		return fmt.Errorf("%w: the id or the channel", verbs.ErrObjectClosed)
	}
	moved := make([]part, len(i.parts))
	for n, p := range i.parts {
		d := to.deviceOf(p.ctx)
		if d == nil {
			return fmt.Errorf("%w: the channel does not have the id's device", verbs.ErrInvalid)
		}
		moved[n] = part{d, p.handle}
	}
	for n, p := range i.parts {
		if err := provider.Exec(p.provider, provider.MigrateID, provider.MigrateIDRequest{ID: p.handle, Channel: moved[n].channel}); err != nil {
			return err
		}
		p.remove(p.handle)
		moved[n].enter(p.handle, i)
		i.parts[n] = moved[n]
	}
	i.channel.ids.Add(-1)
	to.ids.Add(1)
	i.channel = to
	return nil
}
