package hca

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

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
	s := w.a.device.session
	channel, err := s.CreateEventChannel()
	check(t, err)
	defer channel.Events.Close()
	made, err := s.CreateID(provider.CreateIDRequest{Channel: channel.Channel, PortSpace: verbs.PortSpaceUDP})
	check(t, err)
	_, err = s.BindID(provider.BindIDRequest{ID: made.ID, Address: netip.AddrPortFrom(address("10.0.0.1"), 0)})
	check(t, err)
	group := address("239.1.2.3")
	for context := range uint64(2) {
		check(t, s.JoinID(provider.JoinIDRequest{ID: made.ID, Group: group, State: verbs.JoinStateFullMember, Context: 5 + context}))
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
