package hca

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
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

// TestAnyPortNeedsNoPrivilege: port 0 is no port below 1024.
func TestAnyPortNeedsNoPrivilege(t *testing.T) {
	w := newWirePair(t)
	c := idsOn(w.a.another(SessionConfig{Privileged: func() bool { return false }}))
	id := newID(t, c)
	refused(t, id.Bind(netip.AddrPortFrom(address("10.0.0.1"), 80)), unix.EACCES)
	check(t, id.Bind(netip.AddrPortFrom(address("10.0.0.1"), 0)))
	check(t, id.Close())
	check(t, c.Close())
}

// TestLeaveTheLastJoin: of two memberships of one group the last is left first.
func TestLeaveTheLastJoin(t *testing.T) {
	w := newWirePair(t)
	s := w.a.device.Session
	channel, err := s.CreateEventChannel()
	check(t, err)
	defer channel.Events.Close()
	made, err := s.CreateID(provider.CreateIDRequest{Channel: channel.Channel, PortSpace: verbs.PortSpaceUDP})
	check(t, err)
	_, err = s.BindID(provider.BindIDRequest{ID: made.ID, Address: netip.AddrPortFrom(address("10.0.0.1"), 0)})
	check(t, err)
	group := address("239.1.2.3")
	for context := range uint64(2) {
		check(t, s.JoinID(provider.JoinIDRequest{ID: made.ID, Group: group, Flags: verbs.JoinFullMember, Context: 5 + context}))
	}
	for _, want := range []uint64{6, 5} {
		grant, err := s.LeaveID(provider.LeaveIDRequest{ID: made.ID, Group: group})
		check(t, err)
		if grant.Context != want {
			t.Errorf("left %d, want %d", grant.Context, want)
		}
	}
	check(t, s.DestroyID(provider.DestroyIDRequest{ID: made.ID}))
	check(t, s.DestroyEventChannel(provider.DestroyEventChannelRequest{Channel: channel.Channel}))
}
