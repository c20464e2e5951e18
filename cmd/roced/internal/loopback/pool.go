package loopback

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/roced/roced/verbs"
)

// pool has addresses for hosts.
type pool struct {
	prefix netip.Prefix

	mu    sync.Mutex
	taken map[netip.Addr]bool
}

// newPool makes a pool of a prefix's addresses, except the first, which names the network.
func newPool(prefix netip.Prefix, taken ...netip.Addr) *pool {
	p := &pool{prefix: prefix.Masked(), taken: map[netip.Addr]bool{}}
	for _, a := range taken {
		p.taken[a] = true
	}
	return p
}

// take gives the lowest free address.
func (p *pool) take() (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a := p.prefix.Addr().Next(); p.prefix.Contains(a); a = a.Next() {
		if !p.taken[a] {
			p.taken[a] = true
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%w: all addresses of %v are taken; --pool has room for more", verbs.ErrLimit, p.prefix)
}

func (p *pool) give(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, a)
}
