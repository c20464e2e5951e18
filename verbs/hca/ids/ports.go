// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/quota"
)

// Ports holds the port spaces of a network namespace, for the ids of all cards in it. Its lock is the innermost.
type Ports struct {
	mu    sync.Mutex
	bound map[portKey][]*binding
	given map[wire.PortSpace]int // number of bound ephemeral ports
	out   map[portKey]bool       // the bound ephemeral ports
}

type portKey struct {
	space wire.PortSpace
	port  uint16
}

// binding is an id's hold of an address and a port. The bindings of an id on several cards have one owner.
type binding struct {
	portKey
	address       netip.Addr // 0.0.0.0 or :: for all
	card          Card
	local         bool // on a card of OneMachine: the address names the machine; see Card.Local
	listens       bool
	reuse, afonly bool
	user          *quota.Quota // quota of its user; nil for a program in this process
	whose         uint64       // the program's number of the id among the user's; 0: unknown
	owner         *binding
	rules         network.PortRules // at the time of binding
}

func newPorts() *Ports {
	return &Ports{bound: map[portKey][]*binding{}, given: map[wire.PortSpace]int{}, out: map[portKey]bool{}}
}

// add enters a binding. The caller holds mu.
func (p *Ports) add(b *binding) {
	if len(p.bound[b.portKey]) == 0 && b.isGivenOut() {
		p.given[b.space]++
		p.out[b.portKey] = true
	}
	p.bound[b.portKey] = append(p.bound[b.portKey], b)
}

// isGivenOut reports whether the port is in the ephemeral range.
func (b *binding) isGivenOut() bool { return b.port >= b.rules.First && b.port <= b.rules.Last }

// ephemeral returns the number of ephemeral ports.
func (b *binding) ephemeral() int { return int(b.rules.Last) - int(b.rules.First) + 1 }

// bind acquires the binding's port, or chooses one if that is 0.
func (p *Ports) bind(b *binding) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.port == 0 {
		if err := p.choose(b); err != nil {
			return err
		}
	} else if err := p.admit(b); err != nil {
		return err
	}
	for _, other := range p.bound[b.portKey] {
		if err := b.conflict(other, b.reuse); err != nil {
			return err
		}
	}
	b.owner = b
	p.add(b)
	return nil
}

// share adds a binding to that of the same id and address.
func (p *Ports) share(b *binding) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.bound[b.portKey] {
		if other.user == b.user && other.whose == b.whose && other.address == b.address {
			b.owner = other.owner
			p.add(b)
			return nil
		}
	}
	return fmt.Errorf("%w: the id has not bound port %d at all addresses of another card, so it has no binding to share", verbs.ErrAddrNotAvail, b.port)
}

// admit returns an error if the binding's user cannot have another ephemeral port.
func (p *Ports) admit(b *binding) error {
	if b.port != 0 && (!b.isGivenOut() || len(p.bound[b.portKey]) > 0) {
		return nil
	}
	ports := quota.Shared{Noun: "ports that are given out", Used: uint64(p.given[b.space]), Most: uint64(b.ephemeral())}
	return b.user.Admit(quota.IDs, ports)
}

// choose finds a free port.
func (p *Ports) choose(b *binding) error {
	if err := p.admit(b); err != nil {
		return err
	}
	all := b.ephemeral()
	first := rand.IntN(all)
	for i := range all {
		key := portKey{b.space, b.rules.First + uint16((first+i)%all)}
		if len(p.bound[key]) == 0 {
			b.portKey = key
			return nil
		}
	}
	return fmt.Errorf("%w: all %d ports that are given out are in use (sysctl net.ipv4.ip_local_port_range); destroy some ids", verbs.ErrAddrNotAvail, all)
}

// conflict returns an error if a packet could match two bindings of one port. reuse allows that for bindings of one
// user that all allow it.
func (b *binding) conflict(other *binding, reuse bool) error {
	switch {
	case reuse && other.reuse && b.user == other.user:
		return nil
	case b.afonly && other.afonly && b.address.Is4() != other.address.Is4():
		return nil
	case b.address.IsUnspecified() || other.address.IsUnspecified():
		return fmt.Errorf("%w: port %d of %v; another id has it at %v", verbs.ErrAddrNotAvail, b.port, b.address, other.address)
	case b.address == other.address, b.shareLocal(other):
		return fmt.Errorf("%w: port %d of %v", verbs.ErrAddrInUse, b.port, b.address)
	}
	return nil
}

// shareLocal reports whether requests to a local address could match two bindings: all local addresses of an IP version
// lead to the same listener, whose card accepts them at the card's own addresses.
func (b *binding) shareLocal(other *binding) bool {
	return b.address.Is4() == other.address.Is4() && (b.local && other.local || (b.local || other.local) && b.card == other.card)
}

// listen checks that no other id could get the requests of a listening id, and ends the reuse of its address: no other
// id can bind it from then on, as in the kernel. undo restores the binding if the id does not listen after all.
func (p *Ports) listen(b *binding) (undo func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.bound[b.portKey] {
		if other.owner == b.owner {
			continue
		}
		if err := b.conflict(other, false); err != nil {
			return nil, err
		}
	}
	reuse := b.reuse
	b.reuse, b.listens = false, true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		b.reuse, b.listens = reuse, false
	}, nil
}

// meet returns the addresses of a message on a machine with several cards. A local destination, or 0.0.0.0 or ::, is
// replaced by the address of the card on which a program listens there. If none does, or that card has no address of
// the IP version, it stays. A local source cannot be the address of a message to another address, and is replaced by
// the own card's.
func (p *Ports) meet(own Card, space wire.PortSpace, source netip.Addr, dest netip.AddrPort) (from netip.Addr, to netip.AddrPort, err error) {
	if !own.OneMachine() {
		return source, dest, nil
	}
	other := dest.Addr()
	if own.Local(other) || other.IsUnspecified() {
		card := p.listener(space, dest, own)
		if card == nil || card == own && (other.IsLoopback() || other.IsUnspecified()) { // FindEnds has a rule for these
			return source, dest, nil
		}
		end, err := card.LoopbackEnd(other, other)
		if err != nil || end.Is4() != other.Is4() {
			return source, dest, nil
		}
		other = end
	}
	if own.Local(source) {
		source, err = own.LoopbackEnd(source, source)
	}
	return source, netip.AddrPortFrom(other, dest.Port()), err
}

// listener returns the card of an id that listens where a local address leads: own if one of its ids does; nil if none.
func (p *Ports) listener(space wire.PortSpace, dest netip.AddrPort, own Card) (found Card) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.bound[portKey{space, dest.Port()}] {
		if b.listens && b.serves(dest.Addr()) && (found == nil || b.card == own) {
			found = b.card
		}
	}
	return found
}

// serves reports whether a local address leads to the binding: it is bound to all addresses or to a local one, of the
// same IP version or of both.
func (b *binding) serves(local netip.Addr) bool {
	either := b.address.IsUnspecified() && !b.afonly
	return either || (b.local || b.address.IsUnspecified()) && b.address.Is4() == local.Is4()
}

// setAFOnly sets whether the address is for its IP version only.
func (p *Ports) setAFOnly(b *binding, only bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.afonly = only
}

// narrow binds a binding at all addresses to one address.
func (p *Ports) narrow(b *binding, address netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.address, b.local = address, b.local && b.address == address
}

// release frees the port.
func (p *Ports) release(b *binding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := slices.DeleteFunc(p.bound[b.portKey], func(other *binding) bool { return other == b })
	if p.bound[b.portKey] = left; len(left) == 0 {
		delete(p.bound, b.portKey)
		if p.out[b.portKey] {
			p.given[b.space]--
			delete(p.out, b.portKey)
		}
	}
}

// Len returns the number of bound ports.
func (p *Ports) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.bound)
}

// namespaces holds the port spaces of the network namespaces in which this process has cards.
var namespaces = struct {
	mu  sync.Mutex
	all map[any]*namespace
}{all: map[any]*namespace{}}

type namespace struct {
	ports *Ports
	cards int
}

// TakePorts returns the port spaces of a namespace, for a card in it.
func TakePorts(id any) *Ports {
	namespaces.mu.Lock()
	defer namespaces.mu.Unlock()
	n := namespaces.all[id]
	if n == nil {
		n = &namespace{ports: newPorts()}
		namespaces.all[id] = n
	}
	n.cards++
	return n.ports
}

// LeavePorts releases them; with the last card of the namespace they are freed.
func LeavePorts(id any) {
	namespaces.mu.Lock()
	defer namespaces.mu.Unlock()
	if n := namespaces.all[id]; n.cards == 1 {
		delete(namespaces.all, id)
	} else {
		n.cards--
	}
}
