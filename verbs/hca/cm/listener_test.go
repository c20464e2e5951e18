// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// TestListeners: a request goes to the listener that names its address most exactly.
func TestListeners(t *testing.T) {
	m := newManager(t)
	listeners := map[string]*Listener{}
	for _, name := range []string{"", "0.0.0.0", "::", "10.99.0.2", "fd99::2"} {
		var a netip.Addr
		if name != "" {
			a = netip.MustParseAddr(name)
		}
		l, err := m.Listen(ListenConfig{Service: service, Address: a, Owner: name})
		check(t, err)
		listeners[name] = l
		_, err = m.Listen(ListenConfig{Service: service, Address: a})
		refused(t, err, verbs.ErrBusy, service.String())
	}
	goesTo := func(local, remote, want string) {
		t.Helper()
		m.Receive(start, path(local, remote), mad(asked(t, path(remote, local))))
		if want == "refused" {
			if rep := mad(one(t, sent(m))).SIDRRep(); rep.Status != wire.SIDRReject && rep.Status != wire.SIDRNotSupported {
				t.Errorf("to %s: %+v", local, rep)
			}
			return
		}
		if e := one(t, told(m)); e.Owner != want || listeners[want].Next() == nil {
			t.Errorf("to %s: %+v, want %s", local, e, want)
		}
	}
	for _, name := range []string{"10.99.0.2", "0.0.0.0"} {
		goesTo("10.99.0.2", "10.99.0.3", name)
		listeners[name].Close(start)
	}
	for _, name := range []string{"fd99::2", "::", ""} {
		goesTo("fd99::2", "fd99::3", name)
		if name == "" {
			goesTo("10.99.0.2", "10.99.0.3", name)
		}
		listeners[name].Close(start)
		listeners[name].Close(start)
	}
	goesTo("10.99.0.2", "10.99.0.3", "refused")
	for name, other := range map[string]string{"fe80::2%eth0": "fe80::3", "::ffff:10.99.0.2": "10.99.0.3"} {
		l, err := m.Listen(ListenConfig{Service: service, Address: netip.MustParseAddr(name), Owner: name})
		check(t, err)
		listeners[name] = l
		goesTo(netip.MustParseAddr(name).Unmap().WithZone("").String(), other, name)
		l.Close(start)
	}
	if len(m.listeners) != 0 {
		t.Errorf("left: %v", m.listeners)
	}
	_, err := m.Listen(ListenConfig{Service: service, Address: netip.MustParseAddr("10.99.0.9")})
	check(t, err)
	goesTo("10.99.0.2", "10.99.0.3", "refused")
}

// asked returns a request along a path, as its manager sends it.
func asked(t testing.TB, from Path) Datagram {
	t.Helper()
	m := newManager(t)
	_, err := m.Ask(start, ask(from, nil))
	check(t, err)
	return one(t, sent(m))
}

// TestBadAddress: a request whose address header cannot be read, or is wrong, is refused.
func TestBadAddress(t *testing.T) {
	m := newManager(t)
	_, err := m.Listen(ListenConfig{Service: service})
	check(t, err)
	const private = wire.MADHeaderLen + 16
	for name, change := range map[string]func(*Path, wire.MAD){
		"version":     func(_ *Path, m wire.MAD) { m[private] = 1 },
		"IP version":  func(_ *Path, m wire.MAD) { m[private+1] = 0x50 },
		"source":      func(_ *Path, m wire.MAD) { m[private+19]++ },
		"destination": func(_ *Path, m wire.MAD) { m[private+35]++ },
		"sender":      func(p *Path, _ wire.MAD) { p.Remote[15]++ },
	} {
		came, request := request(there.Remote, 1, 1)
		change(&came, request)
		m.Receive(start, came, request)
		if rep := mad(one(t, sent(m))).SIDRRep(); rep.Status != wire.SIDRReject {
			t.Errorf("%s: %+v", name, rep)
		}
	}
	none(t, "events", told(m))
	counted(t, m, map[Counter]uint64{BadAddress: 5, Sent: 5})
}

// TestBacklog: the number of waiting requests is limited, to a quarter or 8 from one sender, and others get no answer;
// each dequeued request makes room.
func TestBacklog(t *testing.T) {
	for _, row := range []struct{ backlog, whole, share int }{{8, 8, 8}, {1, 1, 1}, {3, 3, 3}, {20, 20, 8}, {64, 64, 16}, {0, 1024, 256}, {-1, 1024, 256}, {5000, 1024, 256}} {
		m := newManager(t)
		l, err := m.Listen(ListenConfig{Service: service, Backlog: row.backlog})
		check(t, err)
		knock := func(sender wire.GID, from, times int) {
			for id := from; id < from+times; id++ {
				came, mad := request(sender, uint32(id), uint64(id))
				m.Receive(start, came, mad)
			}
		}
		knock(gid("10.99.0.3"), 0, 2000)
		if n := len(told(m)); n != row.share {
			t.Errorf("backlog %d: got %d waiting requests of one sender, want %d", row.backlog, n, row.share)
		}
		for sender := range byte(200) {
			knock(wire.GIDFromAddr(netip.AddrFrom4([4]byte{10, 98, 0, sender})), 0, 20)
		}
		if n := row.share + len(told(m)); n != row.whole || l.Waiting() != n {
			t.Errorf("backlog %d: got %d waiting requests, want %d", row.backlog, n, row.whole)
		}
		none(t, "answers", sent(m))
		knock(gid("10.99.1.1"), 0, 1)
		none(t, "without room", told(m))
		if r := l.Next(); r.Path.Remote != gid("10.99.0.3") || r.key.requestID != 0 {
			t.Errorf("the oldest is %+v", r)
		}
		knock(gid("10.99.1.1"), 1, 1)
		one(t, told(m))
		c := m.Counters()
		if c[Requests] != uint64(row.whole+1) || c[BacklogFull] != c.received()-c[Requests] {
			t.Errorf("backlog %d: %v", row.backlog, c)
		}
		for l.Next() != nil {
		}
		if len(l.senders) != 0 || l.Waiting() != 0 {
			t.Errorf("left: %v, %d", l.senders, l.Waiting())
		}
	}
}

// TestCloseRefuses: requests that wait when the listener closes are refused, those already dequeued still belong to
// their owner.
func TestCloseRefuses(t *testing.T) {
	m := newManager(t)
	l, err := m.Listen(ListenConfig{Service: service})
	check(t, err)
	for id := range uint32(3) {
		came, mad := request(there.Remote, id, uint64(id))
		m.Receive(start, came, mad)
	}
	taken := l.Next()
	l.Close(start)
	for i, d := range sent(m) {
		if rep := d.mad().SIDRRep(); rep.Status != wire.SIDRReject || rep.RequestID != uint32(i+1) || i > 1 {
			t.Errorf("%+v", rep)
		}
	}
	if l.Next() != nil {
		t.Error("a request of a closed listener")
	}
	check(t, taken.Reply(start, Answer{QPN: 5}))
	if rep := mad(one(t, sent(m))).SIDRRep(); rep.QPN != 5 || rep.Status != wire.SIDRValid {
		t.Errorf("%+v", rep)
	}
	_, err = m.Listen(ListenConfig{Service: service})
	check(t, err)
}

// TestDuplicates: a retry is not a second request; it gets the reply again, once there is one, for as long as the
// kernel's manager would retry.
func TestDuplicates(t *testing.T) {
	m := newManager(t)
	l, err := m.Listen(ListenConfig{Service: service})
	check(t, err)
	came, mad := request(there.Remote, 1, 2)
	for range 3 {
		m.Receive(start, came, mad)
	}
	r := l.Next()
	m.Receive(start, came, mad)
	one(t, told(m))
	none(t, "before the reply", sent(m))
	check(t, r.Reply(start, Answer{QPN: 5}))
	first := one(t, sent(m))
	m.Receive(start, came, mad)
	if again := one(t, sent(m)); again != first {
		t.Errorf("%x, then %x", first.MAD, again.MAD)
	}
	counted(t, m, map[Counter]uint64{Requests: 1, Duplicates: 4, Sent: 2})
	at, some := m.Deadline()
	if !some || at != start.Add(keepReply) {
		t.Errorf("forgotten at %v, %v", at, some)
	}
	for _, other := range []struct {
		sender wire.GID
		id     uint32
		tid    uint64
	}{{there.Remote, 1, 3}, {there.Remote, 2, 2}, {gid("10.99.0.4"), 1, 2}} {
		came, mad := request(other.sender, other.id, other.tid)
		m.Receive(start, came, mad)
		one(t, told(m))
	}
	m.Expire(at)
	m.Receive(at, came, mad)
	one(t, told(m)) // as new
}

// TestRepliesKept: only a limited number of replies is kept, the newest.
func TestRepliesKept(t *testing.T) {
	m := newManager(t)
	l, err := m.Listen(ListenConfig{Service: service})
	check(t, err)
	for id := range uint32(maxKept + 5) {
		came, mad := request(there.Remote, id, 0)
		m.Receive(start, came, mad)
		check(t, l.Next().Reply(start, Answer{}))
		told(m)
		sent(m)
	}
	if len(m.requests) != maxKept || m.kept.len() != maxKept {
		t.Errorf("got %d requests and %d replies", len(m.requests), m.kept.len())
	}
	for id, known := range map[uint32]int{0: 0, 4: 0, 5: 1, maxKept + 4: 1} {
		came, mad := request(there.Remote, id, 0)
		m.Receive(start, came, mad)
		if n := len(sent(m)); n != known {
			t.Errorf("request %d: %d replies, want %d", id, n, known)
		}
	}
	m.Expire(start.Add(keepReply))
	if m.kept.len() != 0 || len(m.requests) != 2 { // those that were new wait
		t.Errorf("got %d requests and %d replies", len(m.requests), m.kept.len())
	}
}
