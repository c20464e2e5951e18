package card

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// AnyGID leaves the choice of a source address to the device.
const AnyGID = -1

// ChooseGID picks a line of the GID table. A program that does not ask for one gets
// the address that it already talks to its peer with (local), if the device has that, else the
// first one; of the peer's IP version, if that is known.
func (d *Device) ChooseGID(index int, local netip.Addr, peer verbs.GID) (verbs.GIDEntry, error) {
	entries, err := d.QueryGIDTable(Port)
	if err != nil {
		return verbs.GIDEntry{}, err
	}
	if index != AnyGID {
		return d.lineOf(entries, index)
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
	return verbs.GIDEntry{}, fmt.Errorf("%w: %s has no address of the IP version of %v, to send there from; ip addr add ADDRESS/LENGTH dev %[2]s",
		verbs.ErrNoGID, d.Attr.Name, peer.Addr())
}

// lineOf is the line of the GID table that the command line asks for.
func (d *Device) lineOf(entries []verbs.GIDEntry, index int) (verbs.GIDEntry, error) {
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
	return verbs.GIDEntry{}, fmt.Errorf("--gid-index %d: %w: %s has no such line; it has %s; see roced show gid -d %[3]s",
		index, verbs.ErrNoGID, d.Attr.Name, strings.Join(lines, ", "))
}

// InZone returns a link-local IPv6 address with the device's interface as its zone, and other addresses as they are. A zone
// that names another interface is EINVAL.
func (d *Device) InZone(address netip.Addr) (netip.Addr, error) {
	zone := address.Zone()
	switch {
	case zone == "" && address.Is6() && !address.Is4In6() && address.IsLinkLocalUnicast():
		return address.WithZone(d.Attr.Name), nil
	case zone == "" || zone == d.Attr.Name:
		return address, nil
	}
	return address, fmt.Errorf("%v is on interface %s, and the device on %s: leave the zone out, or give both the same: %w", address, zone, d.Attr.Name, unix.EINVAL)
}

// NoAddress is an interface whose GID table is empty.
func NoAddress(name string) error {
	return fmt.Errorf("%w: %s has no IP address; ip addr add ADDRESS/LENGTH dev %[2]s", verbs.ErrNoGID, name)
}
