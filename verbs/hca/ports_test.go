package hca

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

// TestBothVersionsOfAPort: one port of 0.0.0.0 and of :: is two ids' only if both are for their version alone.
func TestBothVersionsOfAPort(t *testing.T) {
	for _, row := range []struct{ four, six, fits bool }{{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false}} {
		p := newPorts()
		key := portKey{wire.PortSpaceTCP, 2000}
		check(t, p.bind(&binding{portKey: key, address: netip.IPv4Unspecified(), afonly: row.four}))
		err := p.bind(&binding{portKey: key, address: netip.IPv6Unspecified(), afonly: row.six})
		if row.fits {
			check(t, err)
		} else {
			refused(t, err, unix.EADDRNOTAVAIL, "port 2000")
		}
	}
}

// TestNarrowedPort: what was bound to all addresses, and has one now, leaves the port of others to others.
func TestNarrowedPort(t *testing.T) {
	p := newPorts()
	key := portKey{wire.PortSpaceTCP, 2000}
	one := &binding{portKey: key, address: netip.IPv4Unspecified()}
	check(t, p.bind(one))
	other := &binding{portKey: key, address: address("10.0.0.2")}
	refused(t, p.bind(other), unix.EADDRNOTAVAIL)
	p.narrow(one, address("10.0.0.1"))
	check(t, p.bind(other))
	refused(t, p.bind(&binding{portKey: key, address: address("10.0.0.1")}), unix.EADDRINUSE)
}
