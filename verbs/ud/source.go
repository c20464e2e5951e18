package ud

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"time"

	"github.com/roced/roced/verbs"
)

// look reads the port's active MTU and GID table.
func (e *Endpoint) look() error {
	attr, err := e.verbs.QueryPort(port)
	if err != nil {
		return err
	}
	e.longest.Store(int64(min(e.options.MaxMessage, attr.ActiveMTU.Bytes())))
	entries, err := e.verbs.QueryGIDTable(port)
	if err != nil {
		return err
	}
	e.send.mu.Lock()
	defer e.send.mu.Unlock()
	if h := &e.send.handles; !slices.Equal(entries, e.send.gids) {
		e.send.gids = entries
		h.retireAll()
	}
	return nil
}

// lookAgain calls look if the last time was long enough ago. If look fails nothing changes.
func (e *Endpoint) lookAgain(now time.Duration) {
	last := e.lastLook.Load()
	if now-time.Duration(last) > portPause && e.lastLook.CompareAndSwap(last, int64(now)) {
		_ = e.look()
	}
}

// checkSource refuses an Options.Source that the device does not have.
func (e *Endpoint) checkSource() error {
	if !e.options.Source.IsValid() {
		return nil
	}
	own := verbs.GIDFromAddr(e.options.Source)
	var has []netip.Addr
	for _, entry := range e.send.gids {
		if entry.GID == own {
			return nil
		}
		if address := entry.GID.Addr(); !slices.Contains(has, address) {
			has = append(has, address)
		}
	}
	return fmt.Errorf("%w: Options.Source %v is not an address of the device; it has %v", verbs.ErrNoGID, e.options.Source, has)
}

// chooseSource gives the GID index to send to a destination from.
func (e *Endpoint) chooseSource(dest verbs.GID) (index int, err error) {
	entries, err := e.verbs.QueryGIDTable(port)
	if err != nil {
		return 0, err
	}
	own := verbs.GID{}
	if e.options.Source.IsValid() {
		own = verbs.GIDFromAddr(e.options.Source)
	}
	index, ok := sourceFor(entries, own, dest)
	switch {
	case ok:
		return index, nil
	case !own.IsZero():
		return 0, fmt.Errorf("%w: the device has no address %v (Options.Source) of the IP version of %v", verbs.ErrNoGID, own.Addr(), dest.Addr())
	}
	return 0, fmt.Errorf("%w: the device has no address of the IP version of %v to send from; ip address add gives it one", verbs.ErrNoGID, dest.Addr())
}

// sourceFor chooses a source GID: own, if that is given. Else one of the destination's IP version,
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

// commonPrefix is how many leading bits two GIDs share.
func commonPrefix(a, b verbs.GID) int {
	for i := range a {
		if different := a[i] ^ b[i]; different != 0 {
			return 8*i + bits.LeadingZeros8(different)
		}
	}
	return 8 * len(a)
}
