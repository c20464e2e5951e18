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
)

// Ports are the port spaces of a network namespace, for the ids of all cards in it. Its lock is the
// last to be taken.
type Ports struct {
	mu    sync.Mutex
	bound map[portKey][]*binding
	given map[wire.PortSpace]int // ports of those that are given out, which are bound
}

type portKey struct {
	space wire.PortSpace
	port  uint16
}

// binding is an id's hold of an address and a port. What an id is bound to on several cards has one
// owner.
type binding struct {
	portKey
	address       netip.Addr // 0.0.0.0 or :: for all
	reuse, afonly bool
	user          User // whose it is; nil for a program of this process
	owner         *binding
}

// The ports that an id gets which asks for any: the kernel's ip_local_port_range.
const (
	firstEphemeral  = 32768
	ephemeralPorts  = 60999 - firstEphemeral + 1
	privilegedPorts = 1024 // those below need a privilege
)

func newPorts() *Ports {
	return &Ports{bound: map[portKey][]*binding{}, given: map[wire.PortSpace]int{}}
}

// add enters a binding. The caller holds mu.
func (p *Ports) add(b *binding) {
	if len(p.bound[b.portKey]) == 0 && b.isGivenOut() {
		p.given[b.space]++
	}
	p.bound[b.portKey] = append(p.bound[b.portKey], b)
}

// isGivenOut says whether ids that ask for any port get this one.
func (k portKey) isGivenOut() bool {
	return k.port >= firstEphemeral && k.port < firstEphemeral+ephemeralPorts
}

// bind takes the binding's port, or chooses one if that is 0.
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

// share adds a binding to that of the same user and address.
func (p *Ports) share(b *binding) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.bound[b.portKey] {
		if other.user == b.user && other.address == b.address {
			b.owner = other.owner
			p.add(b)
			return nil
		}
	}
	return fmt.Errorf("%w: no id of this user has port %d at all addresses, so there is none to share", verbs.ErrAddrNotAvail, b.port)
}

// admit says whether the binding's user may have one more port of those that are given out.
func (p *Ports) admit(b *binding) error {
	if b.port != 0 && (!b.isGivenOut() || len(p.bound[b.portKey]) > 0) {
		return nil
	}
	if b.user == nil {
		return nil
	}
	return b.user.AdmitPort(uint64(p.given[b.space]), ephemeralPorts)
}

// choose finds a port that nobody has.
func (p *Ports) choose(b *binding) error {
	if p.given[b.space] == ephemeralPorts {
		return fmt.Errorf("%w: all %d ports that are given out are in use; destroy some ids", verbs.ErrAddrNotAvail, ephemeralPorts)
	}
	if err := p.admit(b); err != nil {
		return err
	}
	first := rand.IntN(ephemeralPorts)
	for i := 0; ; i++ {
		key := portKey{b.space, uint16(firstEphemeral + (first+i)%ephemeralPorts)}
		if len(p.bound[key]) == 0 {
			b.portKey = key
			return nil
		}
	}
}

// conflict refuses two bindings of one port that a packet could be for both of. reuse allows it to
// those of one user that all allow it.
func (b *binding) conflict(other *binding, reuse bool) error {
	switch {
	case reuse && other.reuse && b.user == other.user:
		return nil
	case b.afonly && other.afonly && b.address.Is4() != other.address.Is4():
		return nil
	case b.address.IsUnspecified() || other.address.IsUnspecified():
		return fmt.Errorf("%w: port %d of %v; another id has it at %v", verbs.ErrAddrNotAvail, b.port, b.address, other.address)
	case b.address == other.address:
		return fmt.Errorf("%w: port %d of %v", verbs.ErrAddrInUse, b.port, b.address)
	}
	return nil
}

// alone checks that no other id could get the requests of one that is to listen.
func (p *Ports) alone(b *binding) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.bound[b.portKey] {
		if other.owner == b.owner {
			continue
		}
		if err := b.conflict(other, false); err != nil {
			return err
		}
	}
	return nil
}

// narrow binds to one address what was bound to all.
func (p *Ports) narrow(b *binding, address netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.address = address
}

// release gives the port back.
func (p *Ports) release(b *binding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := slices.DeleteFunc(p.bound[b.portKey], func(other *binding) bool { return other == b })
	if p.bound[b.portKey] = left; len(left) == 0 {
		delete(p.bound, b.portKey)
		if b.isGivenOut() {
			p.given[b.space]--
		}
	}
}

// Len is how many ports are bound.
func (p *Ports) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.bound)
}

// namespaces are the port spaces of the network namespaces that this process has cards in.
var namespaces = struct {
	mu  sync.Mutex
	all map[any]*namespace
}{all: map[any]*namespace{}}

type namespace struct {
	ports *Ports
	cards int
}

// TakePorts gives the port spaces of a namespace, for a card in it.
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

// LeavePorts forgets them with the namespace's last card.
func LeavePorts(id any) {
	namespaces.mu.Lock()
	defer namespaces.mu.Unlock()
	if n := namespaces.all[id]; n.cards == 1 {
		delete(namespaces.all, id)
	} else {
		n.cards--
	}
}
