// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/roced/roced/verbs"
)

// pool holds the addresses of hosts.
type pool struct {
	prefix netip.Prefix

	mu    sync.Mutex
	taken map[netip.Addr]bool
}

// newPool creates a pool of the addresses of a prefix, except the first, which denotes the network.
func newPool(prefix netip.Prefix, taken ...netip.Addr) *pool {
	p := &pool{prefix: prefix.Masked(), taken: map[netip.Addr]bool{}}
	for _, a := range taken {
		p.taken[a] = true
	}
	return p
}

// acquire returns the lowest free address.
func (p *pool) acquire() (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a := p.prefix.Addr().Next(); p.prefix.Contains(a); a = a.Next() {
		if !p.taken[a] {
			p.taken[a] = true
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%w: all addresses of %v are in use; use a larger --pool", verbs.ErrLimit, p.prefix)
}

func (p *pool) release(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, a)
}
