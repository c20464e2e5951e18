// SPDX-License-Identifier: Apache-2.0

package card

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// AnyGID selects the source address automatically.
const AnyGID = -1

// ChooseGID returns a GID table entry. For index AnyGID it selects the entry of local, the address that the TCP
// connection to the peer uses. Otherwise it selects the first entry with the peer's IP version, preferably one that is
// not link-local.
func (d *Device) ChooseGID(index int, local netip.Addr, peer verbs.GID) (verbs.GIDEntry, error) {
	entries, err := d.QueryGIDTable(Port)
	if err != nil {
		return verbs.GIDEntry{}, err
	}
	if index != AnyGID {
		return d.entryOf(entries, index)
	}
	fits := func(g verbs.GID) bool { return peer.IsZero() || g.IsIPv4() == peer.IsIPv4() }
	best := -1
	for i, entry := range entries {
		if !fits(entry.GID) {
			continue
		}
		if entry.GID.Addr() == local.Unmap().WithZone("") {
			return entry, nil
		}
		if best < 0 || entries[best].GID.IsLinkLocal() && !entry.GID.IsLinkLocal() {
			best = i
		}
	}
	if best >= 0 {
		return entries[best], nil
	}
	if peer.IsZero() {
		return verbs.GIDEntry{}, NoAddress(d.Attr.Name)
	}
	return verbs.GIDEntry{}, fmt.Errorf("%w: %s has no address with the IP version of %v; add one with ip addr add ADDRESS/LENGTH dev %[2]s",
		verbs.ErrNoGID, d.Attr.Name, peer.Addr())
}

// entryOf returns the GID table entry with an index.
func (d *Device) entryOf(entries []verbs.GIDEntry, index int) (verbs.GIDEntry, error) {
	var lines []string
	for _, entry := range entries {
		if entry.Index == index {
			return entry, nil
		}
		lines = append(lines, fmt.Sprintf("%d (%v)", entry.Index, entry.GID.Addr()))
	}
	if len(lines) == 0 {
		return verbs.GIDEntry{}, NoAddress(d.Attr.Name)
	}
	return verbs.GIDEntry{}, fmt.Errorf("--gid-index %d: %w: the GID table of %s has %s (see roced show gid -d %[3]s)",
		index, verbs.ErrNoGID, d.Attr.Name, strings.Join(lines, ", "))
}

// InZone returns a link-local IPv6 address with the device's interface as its zone, and other addresses
// unchanged. A zone of another interface is EINVAL.
func (d *Device) InZone(address netip.Addr) (netip.Addr, error) {
	zone := address.Zone()
	switch {
	case zone == "" && address.Is6() && !address.Is4In6() && address.IsLinkLocalUnicast():
		return address.WithZone(d.Attr.Name), nil
	case zone == "" || zone == d.Attr.Name:
		return address, nil
	}
	return address, fmt.Errorf("the zone of %v is interface %s, but the device is on %s; omit the zone or use the same interface: %w", address, zone, d.Attr.Name, unix.EINVAL)
}

// NoAddress returns the error of an interface with an empty GID table.
func NoAddress(name string) error {
	return fmt.Errorf("%w: %s has no IP address; add one with ip addr add ADDRESS/LENGTH dev %[2]s", verbs.ErrNoGID, name)
}
