// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// An id exists on each of its channel's devices, until an address or a route selects one. This file handles several
// devices; on one device each operation is one command. The callers hold ID.mu, or have the only reference to the id.

// open creates the id on all devices, with the options that were set.
func (s *spread) open() (err error) {
	for _, d := range s.channel.all() {
		if _, err = s.openOn(d); err != nil && !isGone(err) {
			s.closeParts()
			return err
		}
	}
	if len(s.parts) == 0 {
		return err
	}
	return nil
}

func (s *spread) openOn(d *device) (part, error) {
	grant, err := provider.Do(d.provider, provider.CreateID, provider.CreateIDRequest{Channel: d.channel, PortSpace: s.space, QPType: s.kind})
	if err != nil {
		return part{}, err
	}
	p := part{d, grant.ID}
	d.enter(p.handle, s.id)
	s.parts = append(s.parts, p)
	for _, o := range s.options {
		if err := p.set(o); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p part) set(o option) error {
	return provider.Exec(p.provider, provider.SetIDOption, provider.SetIDOptionRequest{ID: p.handle, Option: o.option, Value: o.value})
}

func (p part) close() {
	_ = provider.Exec(p.provider, provider.DestroyID, provider.DestroyIDRequest{ID: p.handle}) // fails if the card is closed or has failed, and has freed it
	p.remove(p.handle)
}

func (s *spread) closeParts() {
	for _, p := range s.parts {
		p.close()
	}
	s.parts = nil
}

// settle restricts the id to one device.
func (s *spread) settle(on part) {
	for _, p := range s.parts {
		if p != on {
			p.close()
		}
	}
	s.parts, s.settled = []part{on}, true
}

// each executes a command for the id on all its devices, until one fails. It removes devices that are closed or have
// failed, while there are others.
func (s *spread) each(command func(part) error) error {
	if len(s.parts) == 0 {
		return fmt.Errorf("%w: the id", verbs.ErrObjectClosed)
	}
	for _, p := range slices.Clone(s.parts) {
		switch err := command(p); {
		case err == nil:
		case isGone(err) && len(s.parts) > 1:
			s.lose(p)
		default:
			return err
		}
	}
	return nil
}

// lose removes the id from a device.
func (s *spread) lose(p part) {
	p.close()
	s.parts = slices.DeleteFunc(s.parts, func(other part) bool { return other == p })
}

// set sets an option on all devices.
func (i *ID) set(what string, name ib.IDOption, value uint32) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	o := option{name, value}
	if err := i.each(func(p part) error { return p.set(o) }); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	i.options = append(slices.DeleteFunc(i.options, func(old option) bool { return old.option == name }), o)
	return nil
}

// bindOne binds to an address of one of the devices.
func (s *spread) bindOne(to netip.AddrPort) (err error) {
	for _, p := range s.inOrder(to.Addr()) {
		if _, err = s.bind(p, to, false); err == nil {
			s.settle(p)
			return nil
		}
		if !errors.Is(err, verbs.ErrAddrNotAvail) { // otherwise it may be an address of another device
			return err
		}
	}
	return err
}

// owner returns the part on the device that has the destination as its own address: the host reaches it locally.
func (s *spread) owner(source, dest netip.Addr) (on part, has bool) {
	if source.IsValid() && !source.IsUnspecified() || dest.IsUnspecified() || dest.IsMulticast() || dest.Unmap().IsLoopback() {
		return part{}, false
	}
	for _, p := range s.parts {
		if _, err := provider.Do(p.provider, provider.FindRoute, provider.FindRouteRequest{Source: dest, Dest: dest}); err == nil {
			return p, true
		}
	}
	return part{}, false
}

// inOrder returns the id's parts in the order of searching for an address. A loopback address belongs to the first
// device whose port is up, as in the kernel.
func (s *spread) inOrder(a netip.Addr) []part {
	if !a.Unmap().IsLoopback() || len(s.parts) < 2 {
		return s.parts
	}
	var up, down []part
	for _, p := range s.parts {
		if port, err := p.ctx.QueryPort(1); err == nil && port.State == verbs.PortActive {
			up = append(up, p)
		} else {
			down = append(down, p)
		}
	}
	return append(up, down...)
}

// bindAll binds to all addresses, with one port on all devices. Those in one network namespace share
// it. If it cannot be had on one of them, the id is as it was before.
func (s *spread) bindAll(to netip.AddrPort) error {
	for n, p := range s.parts {
		bound, err := s.bind(p, to, n > 0)
		if n > 0 && errors.Is(err, verbs.ErrAddrNotAvail) {
			bound, err = s.bind(p, to, false)
		}
		if err != nil && n > 0 {
			s.closeParts()
			return errors.Join(err, s.open())
		}
		if err != nil {
			return err
		}
		to = bound
	}
	s.everywhere = to
	return nil
}

func (s *spread) bind(p part, to netip.AddrPort, shared bool) (netip.AddrPort, error) {
	grant, err := provider.Do(p.provider, provider.BindID, provider.BindIDRequest{ID: p.handle, Address: to, Shared: shared, Whose: s.number})
	return grant.Address, err
}

// choose settles on the device of the host's route to a destination.
func (s *spread) choose(source, dest netip.Addr) (on part, err error) {
	if len(s.parts) < 2 {
		return s.one()
	}
	if on, has := s.owner(source, dest); has {
		s.settle(on)
		return on, nil
	}
	var failed error
	for _, p := range s.inOrder(dest) {
		if _, err := provider.Do(p.provider, provider.FindRoute, provider.FindRouteRequest{Source: source, Dest: dest}); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		s.settle(p)
		return p, nil
	}
	return part{}, failed
}
