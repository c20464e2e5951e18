package mcast

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/hack/netlab"
	"github.com/roced/roced/hack/netlab/labtest"
	"golang.org/x/sys/unix"
)

// The first join reports, the last leave leaves, and between them all is silent.
func TestJoinsAreCounted(t *testing.T) {
	lab := pair(t)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			w, m := watch(t, lab.B), open(t, lab.A, way.via)
			check(t, m.Join(way.group))
			first := w.settle(way.group)
			for range 2 {
				check(t, m.Join(way.group))
			}
			for range 2 {
				check(t, m.Leave(way.group))
			}
			check(t, m.Join(way.marker))
			w.settle(way.marker)
			if n := w.count("report", way.group); n != first {
				t.Errorf("%d reports after further joins, %d before", n, first)
			}
			if n := w.count("leave", way.group); n != 0 {
				t.Errorf("%d leaves while there is a member", n)
			}
			check(t, m.Leave(way.group))
			eventually(t, "leave", func() bool { return w.count("leave", way.group) > 0 })
			if isMember(t, lab.A, way.group) || !isMember(t, lab.A, way.marker) {
				t.Error("left the wrong group")
			}
			refused(t, m.Leave(way.group), ErrNotJoined)
			refused(t, m.Leave(way.group), unix.EADDRNOTAVAIL)
		})
	}
}

func TestVersions(t *testing.T) {
	rows := []struct{ knob, value, want string }{
		{"ipv4/conf/eth0/force_igmp_version", "2", "IGMPv2"},
		{"ipv4/conf/eth0/force_igmp_version", "3", "IGMPv3"},
		{"ipv6/conf/eth0/force_mld_version", "1", "MLDv1"},
		{"ipv6/conf/eth0/force_mld_version", "2", "MLDv2"},
	}
	lab := pair(t)
	for _, row := range rows {
		sysctl(t, lab.A, row.knob, row.value)
		for _, way := range ways {
			if way.group.Is4() != (row.want[0] == 'I') {
				continue
			}
			t.Run(row.want+" "+way.name, func(t *testing.T) {
				w, m := watch(t, lab.B), open(t, lab.A, way.via)
				check(t, m.Join(way.group))
				w.settle(way.group)
				check(t, m.Leave(way.group))
				eventually(t, "leave", func() bool { return w.count("leave", way.group) > 0 })
				for _, what := range []string{"report", "leave"} {
					if got := w.versions(what, way.group); len(got) != 1 || !got[row.want] {
						t.Errorf("%s in %v, want %s", what, got, row.want)
					}
				}
			})
		}
	}
}

// A switch that snoops lets a group through from join to leave, for as long as members
// answer its queries.
func TestSwitchKnows(t *testing.T) {
	lab := labtest.Switched(t)
	w := watch(t, lab.B)
	inMDB := func(group netip.Addr) bool {
		list, err := lab.Bridge.MDB()
		check(t, err)
		for _, entry := range list {
			if entry == (netlab.MDBEntry{Port: lab.PortA, Group: group}) {
				return true
			}
		}
		return false
	}
	joined := map[netip.Addr]*Memberships{}
	for _, way := range ways {
		m := open(t, lab.A, way.via)
		check(t, m.Join(way.group))
		joined[way.group] = m
		eventually(t, "entry after join by "+way.name, func() bool { return inMDB(way.group) })
	}
	// An entry lives for 2.5 seconds, unless a query is answered; queries come every second.
	asked4, asked6 := w.count("query", netip.IPv4Unspecified()), w.count("query", netip.IPv6Unspecified())
	eventually(t, "queries", func() bool {
		return w.count("query", netip.IPv4Unspecified()) >= asked4+4 && w.count("query", netip.IPv6Unspecified()) >= asked6+4
	})
	for group, m := range joined {
		if !inMDB(group) {
			t.Errorf("the switch has forgotten %v", group)
		}
		check(t, m.Leave(group))
		eventually(t, "no entry after leave", func() bool { return !inMDB(group) })
	}
}

func TestJoinErrors(t *testing.T) {
	m := open(t, labtest.Pair(t).A, Auto)
	for _, address := range []string{"10.0.0.1", "fd00::1", "ff02::5%eth0", "0.0.0.0"} {
		refused(t, m.Join(netip.MustParseAddr(address)), unix.EINVAL, address)
	}
	refused(t, m.Join(netip.Addr{}), unix.EINVAL)
	check(t, m.Close())
	check(t, m.Close())
	refused(t, m.Join(ways[0].group), unix.EBADF, "closed")
	refused(t, m.Leave(ways[0].group), ErrNotJoined)
}

func TestOpenErrors(t *testing.T) {
	host := labtest.New(t, "mcast-a")
	for _, c := range []Config{
		{Interface: "eth0", Namespace: host.Path()},
		{Interface: "lo", Namespace: "/run/netns/there is none"},
		{Interface: "lo", Namespace: "/proc/self/ns/uts"},
	} {
		if m, err := Open(c); err == nil {
			t.Errorf("Open(%+v) works", c)
			check(t, m.Close())
		}
	}
}

// An IPv4 group may come as an IPv6 address that stands for it, as in an MGID.
func TestMappedIsIPv4(t *testing.T) {
	host := pair(t).A
	m := open(t, host, Socket)
	check(t, m.Join(netip.MustParseAddr("::ffff:239.1.2.3")))
	if !isMember(t, host, ways[0].group) {
		t.Error("not a member of 239.1.2.3")
	}
	check(t, m.Leave(netip.MustParseAddr("239.1.2.3")))
}

// Without a namespace's name, the calling thread's counts, and must stay the same: an
// index means another interface elsewhere.
func TestNamespaceOfTheCaller(t *testing.T) {
	host := pair(t).A
	var m *Memberships
	check(t, host.Do(func() (err error) {
		if m, err = Open(Config{Interface: "eth0", Via: Socket, StateDir: t.TempDir()}); err != nil {
			return err
		}
		return m.Join(ways[1].group)
	}))
	defer func() { check(t, m.Close()) }()
	if !isMember(t, host, ways[1].group) {
		t.Error("not a member")
	}
	refused(t, m.Join(ways[1].marker), unix.EXDEV, "namespace")
}
