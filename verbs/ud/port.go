// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
)

// portPause is the interval of reading the port's addresses and MTU while messages are sent.
const portPause = time.Second

// port is the cached state of the endpoint's port.
type port struct {
	verbs   *verbs.Context
	options *Options
	changed func() // called when the GID table has changed

	longest atomic.Int64 // length of the longest message that the port sends now, in bytes
	readAt  atomic.Int64 // time since the creation of the endpoint

	mu   sync.Mutex
	gids []verbs.GIDEntry
}

// open reads the port, and checks that the device has Options.Source.
func (p *port) open(e *Endpoint) error {
	p.verbs, p.options, p.changed = e.verbs, &e.options, e.handles.retireAll
	if err := p.read(); err != nil || !p.options.Source.IsValid() {
		return err
	}
	own := verbs.GIDFromAddr(p.options.Source)
	var has []netip.Addr
	for _, entry := range p.gids {
		if entry.GID == own {
			return nil
		}
		if address := entry.GID.Addr(); !slices.Contains(has, address) {
			has = append(has, address)
		}
	}
	return fmt.Errorf("%w: Options.Source %v is not an address of the device; its addresses are %v", verbs.ErrNoGID, p.options.Source, has)
}

// read reads the active MTU and the GID table.
func (p *port) read() error {
	attr, err := p.verbs.QueryPort(portNumber)
	if err != nil {
		return err
	}
	p.longest.Store(int64(min(p.options.MaxMessage, attr.ActiveMTU.Bytes())))
	entries, err := p.verbs.QueryGIDTable(portNumber)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(entries, p.gids) {
		p.gids = entries
		p.changed()
	}
	return nil
}

// readAgain calls read if the last time was portPause ago. If it fails, the state is unchanged.
func (p *port) readAgain(now time.Duration) {
	last := p.readAt.Load()
	if now-time.Duration(last) > portPause && p.readAt.CompareAndSwap(last, int64(now)) {
		_ = p.read()
	}
}

// readSoon makes the next message read the port again.
func (p *port) readSoon() { p.readAt.Store(-int64(portPause)) }

// chooseSource returns the source GID index for a destination.
func (p *port) chooseSource(dest verbs.GID) (index int, err error) {
	entries, err := p.verbs.QueryGIDTable(portNumber)
	if err != nil {
		return 0, err
	}
	own := verbs.GID{}
	if p.options.Source.IsValid() {
		own = verbs.GIDFromAddr(p.options.Source)
	}
	index, ok := sourceFor(entries, own, dest)
	switch {
	case ok:
		return index, nil
	case !own.IsZero():
		return 0, fmt.Errorf("%w: the device has no address %v (Options.Source) of the IP version of %v", verbs.ErrNoGID, own.Addr(), dest.Addr())
	}
	return 0, fmt.Errorf("%w: the device has no source address of the IP version of %v; add one with ip address add", verbs.ErrNoGID, dest.Addr())
}

// sourceFor chooses a source GID: own, if that is given. Otherwise one of the destination's IP version,
// preferring first the same scope (link-local or not), then the longest common prefix (RFC 6724,
// section 5), then the lowest index.
func sourceFor(entries []verbs.GIDEntry, own, dest verbs.GID) (index int, ok bool) {
	best := -1
	for _, entry := range entries {
		if entry.GID.IsIPv4() != dest.IsIPv4() || !own.IsZero() && entry.GID != own {
			continue
		}
		score := 0
		if entry.GID.IsLinkLocal() == dest.IsLinkLocal() {
			score = 1 + 8*len(dest)
		}
		if !dest.IsMulticast() {
			score += commonPrefix(entry.GID, dest)
		}
		if score > best {
			best, index = score, entry.Index
		}
	}
	return index, best >= 0
}

// commonPrefix returns the number of leading bits that two GIDs share.
func commonPrefix(a, b verbs.GID) int {
	for i := range a {
		if different := a[i] ^ b[i]; different != 0 {
			return 8*i + bits.LeadingZeros8(different)
		}
	}
	return 8 * len(a)
}
