// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/paths"
)

// Port is the port of a card. Its state is a value that each query of the host replaces, so reading it needs no lock.
// Package ids uses it as a part of ids.Card.
type Port struct {
	host    network.Host
	machine network.Machine        // the host's namespace, if it is the machine; else nil
	VLAN    uint16                 // the tag of the card's frames; 0 for none
	name    atomic.Pointer[string] // of the interface, as of the last query
	state   atomic.Pointer[State]

	Asking sync.Mutex // held from a query of the host until its result is applied
}

// State is the port as of a query. It is immutable; the next query replaces it.
type State struct {
	network.Port
	RDMA  wire.MTU // the active MTU
	asked wire.MTU // from WithMTU; 0 for the largest that fits
	GIDs  GIDTable
}

// New returns the port of a host, down and without addresses.
func New(on network.Host, mtu wire.MTU) *Port {
	p, name := &Port{host: on, VLAN: on.VLAN()}, on.Name()
	p.machine, _ = on.Namespace().(network.Machine)
	p.name.Store(&name)
	p.state.Store(&State{GIDs: NewGIDTable(), asked: mtu})
	return p
}

// Now returns the port as of the last query.
func (p *Port) Now() *State { return p.state.Load() }

// Set replaces the state.
func (p *Port) Set(now *State) { p.state.Store(now) }

// Name returns the name of the interface, which changes when the interface is renamed.
func (p *Port) Name() string { return *p.name.Load() }

// Rename changes the name.
func (p *Port) Rename(now string) { p.name.Store(&now) }

// GUID returns the GUID of the card's node: the EUI-64 of the port's MAC address.
func (p *Port) GUID() uint64 { return GUID(p.Now().MAC) }

// GUID returns the EUI-64 of a MAC address (RFC 4291, appendix A).
func GUID(m wire.MAC) (g uint64) {
	for _, b := range []byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]} {
		g = g<<8 | uint64(b)
	}
	return g
}

// ActiveMTU returns the RDMA MTU of the port.
func (p *Port) ActiveMTU() wire.MTU { return p.Now().RDMA }

// PortRules returns the host's current rules for port numbers.
func (p *Port) PortRules() network.PortRules { return p.host.PortRules() }

// AHAttr returns the attributes of an address handle for a path.
func (p *Port) AHAttr(ends paths.Ends, class uint8) verbs.AHAttr {
	now := p.Now()
	return verbs.AHAttr{
		Port: 1, SL: now.Egress[host.TOSPriority(class)],
		GRH: verbs.GlobalRoute{DGID: ends.Dest, SGIDIndex: now.GIDs.index[ends.Source], TrafficClass: class, HopLimit: wire.DefaultHopLimit},
	}
}

// GIDIndex returns the line of an address in the GID table; verbs.ErrNoGID if it is not the port's.
func (p *Port) GIDIndex(gid wire.GID) (int, error) {
	index, has := p.Now().GIDs.index[gid]
	if !has {
		return 0, fmt.Errorf("%w: %v is not an address of %s", verbs.ErrNoGID, gid, p.Name())
	}
	return index, nil
}

// Has reports whether an address is the port's.
func (p *Port) Has(gid wire.GID) bool { return p.Now().GIDs.contains(gid) }

// Next returns the state after a query. If the interface's MTU is too small for any RDMA MTU, the active MTU does not
// change.
func (s *State) Next(found network.Port, added, removed []wire.GID) (next *State, tooSmall error) {
	next = &State{Port: found, RDMA: s.RDMA, asked: s.asked, GIDs: s.GIDs.clone()}
	mtu, tooSmall := found.RDMAMTU()
	if tooSmall == nil {
		next.RDMA = min(mtu, cmp.Or(s.asked, mtu))
	}
	next.Up = found.Up && tooSmall == nil && found.Lost == nil
	next.GIDs.Apply(added, removed)
	return next, tooSmall
}

// LargestMTU returns the largest RDMA MTU that the port can have.
func (s *State) LargestMTU() wire.MTU {
	most := s.Most
	if s.Stuck != nil {
		most = s.Carried
	}
	return min(most, cmp.Or(s.asked, most))
}
