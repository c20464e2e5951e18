// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// bound returns an id that is bound to an address.
func bound(t *testing.T, s *Session, channel provider.Handle, space wire.PortSpace, at string) provider.Handle {
	t.Helper()
	made, err := s.CreateID(provider.CreateIDRequest{Channel: channel, PortSpace: space})
	check(t, err)
	_, err = s.BindID(provider.BindIDRequest{ID: made.ID, Address: netip.MustParseAddrPort(at)})
	check(t, err)
	return made.ID
}

// A port that one id has is refused to another; it is free when the id is destroyed, and nothing is left.
func TestIDsHavePorts(t *testing.T) {
	s, _, channel := newSession(t)
	one := bound(t, s, channel, wire.PortSpaceUDP, "10.0.0.1:7174")
	other, err := s.CreateID(provider.CreateIDRequest{Channel: channel, PortSpace: wire.PortSpaceUDP})
	check(t, err)
	again := provider.BindIDRequest{ID: other.ID, Address: netip.MustParseAddrPort("10.0.0.1:7174")}
	_, err = s.BindID(again)
	refused(t, err, unix.EADDRINUSE)
	_, err = s.BindID(provider.BindIDRequest{ID: other.ID, Address: netip.MustParseAddrPort("10.0.0.1:80")})
	refused(t, err, unix.EACCES, "a privilege")
	check(t, s.DestroyID(provider.DestroyIDRequest{ID: one}))
	_, err = s.BindID(again)
	check(t, err)
	check(t, s.DestroyID(provider.DestroyIDRequest{ID: other.ID}))
	if ids, channels := s.Used(); ids != 0 || channels != 1 || s.manager.Ports.Len() != 0 {
		t.Errorf("got %d ids, %d channels, %d ports", ids, channels, s.manager.Ports.Len())
	}
}

// An id gets its event when the host has joined, and leaves when it is destroyed; an id in a state without joins starts
// none.
func TestIDsJoin(t *testing.T) {
	s, a, channel := newSession(t)
	id := bound(t, s, channel, wire.PortSpaceUDP, "10.0.0.1:0")
	join := provider.JoinIDRequest{ID: id, Group: address("239.1.1.1"), Context: 7}
	a.refuses = verbs.ErrLimit
	refused(t, s.JoinID(join), verbs.ErrLimit)
	a.refuses = nil
	check(t, s.JoinID(join))
	s.Wait()
	got, err := s.channels.next(provider.GetCMEventRequest{Channel: channel})
	check(t, err)
	if e := got.Event; !got.Found || !got.Drained || e.Type != ib.CMEventMulticastJoin || e.Context != 7 || e.AH.GRH.DGID.Addr() != address("239.1.1.1") {
		t.Errorf("%+v", got)
	}
	check(t, s.DestroyID(provider.DestroyIDRequest{ID: id}))
	if len(a.left) != 1 || a.left[0] != 9 {
		t.Errorf("left %v", a.left)
	}
}

// When the card has failed, ids bound to it get an event; existing objects can be destroyed, but none created. When the
// session is closed, all commands fail.
func TestIDsOutliveTheirCard(t *testing.T) {
	s, a, channel := newSession(t)
	id := bound(t, s, channel, wire.PortSpaceTCP, "10.0.0.1:0")
	check(t, s.ListenID(provider.ListenIDRequest{ID: id, Backlog: 1}))
	if s.manager.Users() != 1 {
		t.Errorf("got %d users", s.manager.Users())
	}
	a.err = verbs.ErrDeviceFatal
	s.RemoveDevice()
	_, err := s.CreateID(provider.CreateIDRequest{Channel: channel, PortSpace: wire.PortSpaceTCP})
	refused(t, err, verbs.ErrDeviceFatal)
	got, err := s.channels.next(provider.GetCMEventRequest{Channel: channel})
	check(t, err)
	if got.Event.Type != ib.CMEventDeviceRemoval || got.Event.ID != id {
		t.Errorf("%+v", got)
	}
	_, err = s.channels.next(provider.GetCMEventRequest{Channel: channel})
	refused(t, err, verbs.ErrDeviceFatal)
	check(t, s.DestroyID(provider.DestroyIDRequest{ID: id}))
	a.err = verbs.ErrClosed
	refused(t, s.channels.destroy(provider.DestroyEventChannelRequest{Channel: channel}), verbs.ErrClosed)
	if s.manager.Users() != 0 || s.manager.Ports.Len() != 0 {
		t.Errorf("got %d users, %d ports", s.manager.Users(), s.manager.Ports.Len())
	}
}

// The end of a session ends all its ids, even if one of them panics.
func TestSessionEndsItsIDs(t *testing.T) {
	s, _, channel := newSession(t)
	for range 3 {
		id := bound(t, s, channel, wire.PortSpaceTCP, "10.0.0.1:0")
		check(t, s.ListenID(provider.ListenIDRequest{ID: id}))
	}
	s.ids.All()[1].channel = nil // it panics
	if err := s.End(); err == nil {
		t.Error("the panic is not reported")
	}
	check(t, s.Free())
	if s.manager.Users() != 0 || s.manager.Ports.Len() != 0 {
		t.Errorf("got %d users, %d ports", s.manager.Users(), s.manager.Ports.Len())
	}
}

// A channel is readable while it has an event: not after the event's id was destroyed or has migrated to another
// channel, which is then readable, or after the event's join has ended.
func TestChannelReadable(t *testing.T) {
	s, _, channel := newSession(t)
	other, err := s.channels.create()
	check(t, err)
	defer other.Events.Close()
	first := s.channels.All()[0]
	group := address("239.1.1.1")
	for _, row := range []struct {
		name     string
		end      func(id provider.Handle) error
		migrates bool
	}{
		{"destroyed", func(id provider.Handle) error { return s.DestroyID(provider.DestroyIDRequest{ID: id}) }, false},
		{"left", func(id provider.Handle) error {
			_, err := s.LeaveID(provider.LeaveIDRequest{ID: id, Group: group})
			return err
		}, false},
		{"migrated", func(id provider.Handle) error {
			return s.MigrateID(provider.MigrateIDRequest{ID: id, Channel: other.Channel})
		}, true},
	} {
		id := bound(t, s, channel, wire.PortSpaceUDP, "10.0.0.1:0")
		check(t, s.JoinID(provider.JoinIDRequest{ID: id, Group: group}))
		s.Wait()
		if !readable(t, first.peer) {
			t.Errorf("%s: the channel has an event but is not readable", row.name)
		}
		check(t, row.end(id))
		if readable(t, first.peer) || readable(t, int(other.Events.Fd())) != row.migrates {
			t.Errorf("%s: the channel is readable: %v; the other: %v", row.name, readable(t, first.peer), readable(t, int(other.Events.Fd())))
		}
	}
}

func readable(t *testing.T, fd int) bool {
	t.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	check(t, err)
	return n == 1
}
