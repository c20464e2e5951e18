// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/admin"
	"github.com/roced/roced/verbs/server/peer"
)

// Source is a device that clients can open, such as a *hca.Card. If it is a provider.Doer, it answers queries without a
// session; while it has no card their error is verbs.ErrDeviceFatal.
type Source interface {
	Name() string
	NewSession(hca.SessionConfig) (*hca.Session, error)
}

// namespaceSource is a Source that has a card for each network namespace. While there is one, a program sees only
// devices of its own namespace: the Sources of other kinds belong to the service's.
type namespaceSource interface {
	NewSessionOf(*peer.Caller, hca.SessionConfig) (*hca.Session, error)
	QueryDeviceOf(*peer.Caller) (verbs.DeviceAttr, error)
	CardOf(*peer.Caller) *hca.Card // nil if it is not open
}

// processSource is a Source that is another device for each process.
type processSource interface {
	QueryDeviceOf(process any) (verbs.DeviceAttr, error)
}

// Process is a process of a user: a session's hca.SessionConfig.Process.
type Process struct {
	PID int
	UID uint32
}

// processOf returns the Process of a peer. It is nil if the peer is in a PID namespace whose processes the service does
// not see.
func processOf(p *peer.Peer) any {
	if p.PID == 0 {
		return nil
	}
	return Process{p.PID, p.UID}
}

// devices are those that clients can open.
type devices struct {
	namespace peer.Namespace // the service's own

	mu   sync.Mutex
	list []Source
}

// set replaces the devices.
func (d *devices) set(list []Source) (added, removed []Source, err error) {
	names := map[string]bool{}
	for _, one := range list {
		if names[one.Name()] {
			return nil, nil, fmt.Errorf("%w: two devices are called %q", verbs.ErrInvalid, one.Name())
		}
		names[one.Name()] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.list
	d.list = slices.Clone(list)
	return without(list, before), without(before, list), nil
}

// without returns the devices of a list that are not in another one.
func without(list, other []Source) []Source {
	return slices.DeleteFunc(slices.Clone(list), func(d Source) bool { return slices.Contains(other, d) })
}

func (d *devices) all() []Source {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.list)
}

// distinguishNamespaces reports whether there is a device for programs in other network namespaces.
func (d *devices) distinguishNamespaces() bool {
	return slices.ContainsFunc(d.all(), isOfNamespaces)
}

func isOfNamespaces(d Source) bool {
	_, is := d.(namespaceSource)
	return is
}

// confine confines a peer that is in another network namespace than the service, if devices differ between namespaces,
// and a peer in a container. A peer whose namespace is unknown is confined, and sees no devices; the error is the reason.
func (d *devices) confine(p *peer.Peer) error {
	if !d.distinguishNamespaces() {
		p.Confine(p.Container != "")
		return nil
	}
	caller, err := p.Caller()
	p.Confine(p.Container != "" || err != nil || caller.Namespace != d.namespace)
	return err
}

// seenBy returns the devices that a peer may open.
func (d *devices) seenBy(p *peer.Peer) []Source {
	all := d.all()
	if !p.IsConfined() || !slices.ContainsFunc(all, isOfNamespaces) {
		return all
	}
	caller := p.KnownCaller()
	if caller == nil {
		return nil
	}
	elsewhere := caller.Namespace != d.namespace
	return slices.DeleteFunc(all, func(one Source) bool { return isOfNamespaces(one) != elsewhere })
}

// find returns the device of a name, if the peer may open it. An empty name is the only device.
func (d *devices) find(p *peer.Peer, name string) (Source, error) {
	seen := d.seenBy(p)
	if name == "" && len(seen) == 1 {
		return seen[0], nil
	}
	for _, one := range seen {
		if one.Name() == name {
			return one, nil
		}
	}
	return nil, fmt.Errorf("%w: no device %q; there are %q", verbs.ErrInvalid, name, namesOf(seen))
}

func namesOf(devices []Source) (names []string) {
	for _, d := range devices {
		names = append(names, d.Name())
	}
	return names
}

// callerElsewhere returns the caller of a peer in another network namespace than the service. The interfaces of the
// service's own namespace are for Sources of other kinds.
func (d *devices) callerElsewhere(p *peer.Peer) (*peer.Caller, error) {
	caller, err := p.Caller()
	if err == nil && caller.Namespace == d.namespace {
		err = fmt.Errorf("%w: this device is for programs in other network namespaces than the service's", verbs.ErrInvalid)
	}
	return caller, err
}

// newSession makes a session on a device, or on its card of the peer's network namespace.
func (d *devices) newSession(p *peer.Peer, device Source, config hca.SessionConfig) (*hca.Session, error) {
	source, is := device.(namespaceSource)
	if !is {
		return device.NewSession(config)
	}
	caller, err := d.callerElsewhere(p)
	if err != nil {
		return nil, err
	}
	return source.NewSessionOf(caller, config)
}

// query returns the attributes of a device as the peer sees it; an error if it has no card now.
func (d *devices) query(p *peer.Peer, device Source) (verbs.DeviceAttr, error) {
	switch source := device.(type) {
	case namespaceSource:
		caller, err := d.callerElsewhere(p)
		if err != nil {
			return verbs.DeviceAttr{}, err
		}
		return source.QueryDeviceOf(caller)
	case processSource:
		return source.QueryDeviceOf(processOf(p))
	case provider.Doer:
		return provider.Do(source, provider.QueryDevice, provider.None{})
	}
	return verbs.DeviceAttr{}, nil
}

// errNoProgram is the reason why there is no card of a namespace.
var errNoProgram = errors.New("it is opened for the first program in this network namespace")

// card returns what describes a device: the device itself, or its open card of the peer's network namespace.
func (d *devices) card(p *peer.Peer, device Source) (any, error) {
	source, is := device.(namespaceSource)
	if !is {
		return device, nil
	}
	caller, err := d.callerElsewhere(p)
	if err != nil {
		return nil, &admin.NoCardError{Device: device.Name(), Cause: err}
	}
	if card := source.CardOf(caller); card != nil {
		return card, nil
	}
	return nil, &admin.NoCardError{Device: device.Name(), Cause: errNoProgram}
}

// view returns the device of a name for programs that inspect the service.
func (d *devices) view(p *peer.Peer, name string) (admin.Device, error) {
	device, err := d.find(p, name)
	if err != nil {
		return admin.Device{}, err
	}
	return admin.Device{Name: device.Name(), Source: device, Card: func() (any, error) { return d.card(p, device) }}, nil
}
