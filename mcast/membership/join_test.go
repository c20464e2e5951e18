// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// TestJoinsAreCounted: only the first join sends a report, and only the last leave sends a leave.
func TestJoinsAreCounted(t *testing.T) {
	t.Parallel()
	hosts := pair(t)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			w, m := watch(t, hosts.B), open(t, hosts.A, way.via)
			check(t, m.Join(way.group))
			first := w.awaitQuiet(way.group)
			for range 2 {
				check(t, m.Join(way.group))
			}
			for range 2 {
				check(t, m.Leave(way.group))
			}
			check(t, m.Join(way.marker))
			w.awaitQuiet(way.marker)
			if n := w.count(capture.Report, way.group); n != first {
				t.Errorf("%d reports after further joins, %d before", n, first)
			}
			if n := w.count(capture.Leave, way.group); n != 0 {
				t.Errorf("%d leaves while a member exists", n)
			}
			check(t, m.Leave(way.group))
			eventually(t, "leave", func() bool { return w.count(capture.Leave, way.group) > 0 })
			if isMember(t, hosts.A, way.group) || !isMember(t, hosts.A, way.marker) {
				t.Error("left the wrong group")
			}
			refused(t, m.Leave(way.group), ErrNotJoined)
			refused(t, m.Leave(way.group), unix.EADDRNOTAVAIL)
		})
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	rows := []struct{ knob, value, want string }{
		{"ipv4/conf/eth0/force_igmp_version", "2", "IGMPv2"},
		{"ipv4/conf/eth0/force_igmp_version", "3", "IGMPv3"},
		{"ipv6/conf/eth0/force_mld_version", "1", "MLDv1"},
		{"ipv6/conf/eth0/force_mld_version", "2", "MLDv2"},
	}
	hosts := pair(t)
	for _, row := range rows {
		sysctl(t, hosts.A, row.knob, row.value)
		for _, way := range ways {
			if way.group.Is4() != (row.want[0] == 'I') {
				continue
			}
			t.Run(row.want+" "+way.name, func(t *testing.T) {
				w, m := watch(t, hosts.B), open(t, hosts.A, way.via)
				check(t, m.Join(way.group))
				w.awaitQuiet(way.group)
				check(t, m.Leave(way.group))
				eventually(t, "leave", func() bool { return w.count(capture.Leave, way.group) > 0 })
				for _, kind := range []capture.Kind{capture.Report, capture.Leave} {
					if got := w.versions(kind, way.group); len(got) != 1 || !got[row.want] {
						t.Errorf("%s in %v, want %s", kind, got, row.want)
					}
				}
			})
		}
	}
}

// TestSwitchSnoops: a snooping switch forwards a group from join to leave, because members respond to its queries, in
// each version of IGMP and MLD.
func TestSwitchSnoops(t *testing.T) {
	t.Parallel()
	for igmp, mld := range map[byte]byte{2: 1, 3: 2} {
		t.Run(fmt.Sprintf("IGMPv%d MLDv%d", igmp, mld), func(t *testing.T) {
			t.Parallel()
			checkSwitch(t, switchWithVersions(t, igmp, mld), map[bool]string{true: fmt.Sprintf("IGMPv%d", igmp), false: fmt.Sprintf("MLDv%d", mld)})
		})
	}
}

// switchWithVersions returns a switch that queries in the given versions, and a host on it that
// responds in them. Both must be set from the start: for minutes after an IGMPv2 query a host uses IGMPv2, regardless
// of force_igmp_version, and a host that is forced to MLDv2 does not respond to MLDv1.
func switchWithVersions(t *testing.T, igmp, mld byte) *labtest.SwitchLab {
	t.Helper()
	hosts := &labtest.SwitchLab{PairLab: labtest.PairLab{A: labtest.New(t, "mcast-a")}}
	sysctl(t, hosts.A, "ipv4/conf/default/force_igmp_version", fmt.Sprint(igmp))
	sysctl(t, hosts.A, "ipv6/conf/default/force_mld_version", fmt.Sprint(mld))
	var err error
	hosts.Bridge, err = lab.NewBridge("mcast-switch")
	check(t, err)
	t.Cleanup(func() { check(t, hosts.Bridge.Close()) })
	setVersions(t, hosts.Bridge, igmp, mld)
	hosts.PortA, err = hosts.Bridge.Port(hosts.A, "eth0")
	check(t, err)
	check(t, hosts.A.AddAddress("eth0", "10.77.0.1/24"))
	return hosts
}

// setVersions sets the versions of a bridge's queries.
func setVersions(t *testing.T, bridge *lab.Bridge, igmp, mld byte) {
	t.Helper()
	request := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	header := nl.NewIfInfomsg(unix.AF_UNSPEC)
	index, err := bridge.Index("br0")
	check(t, err)
	header.Index = int32(index)
	request.AddData(header)
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, []byte("bridge"))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	data.AddRtAttr(nl.IFLA_BR_MCAST_IGMP_VERSION, []byte{igmp})
	data.AddRtAttr(nl.IFLA_BR_MCAST_MLD_VERSION, []byte{mld})
	request.AddData(info)
	check(t, bridge.Do(func() error {
		_, err := request.Execute(unix.NETLINK_ROUTE, 0)
		return err
	}))
}

func checkSwitch(t *testing.T, hosts *labtest.SwitchLab, version map[bool]string) {
	w := watchLink(t, hosts.Bridge.Namespace, hosts.PortA)
	joined := map[netip.Addr]*Memberships{}
	for _, way := range ways {
		m := open(t, hosts.A, way.via)
		check(t, m.Join(way.group))
		joined[way.group] = m
		eventually(t, "entry after join by "+way.name, func() bool { return inMDB(t, hosts, way.group) })
	}
	// An entry expires after 2.5 seconds without a response to a query; queries are sent every second.
	queries4, queries6 := w.count(capture.Query, netip.IPv4Unspecified()), w.count(capture.Query, netip.IPv6Unspecified())
	responses := map[netip.Addr]int{}
	for group := range joined {
		responses[group] = w.count(capture.Report, group)
	}
	eventually(t, "queries", func() bool {
		return w.count(capture.Query, netip.IPv4Unspecified()) >= queries4+4 && w.count(capture.Query, netip.IPv6Unspecified()) >= queries6+4
	})
	for group, m := range joined {
		eventually(t, "responses", func() bool { return w.count(capture.Report, group) >= responses[group]+3 })
		// If a query was late, the entry may be missing until the next response.
		eventually(t, "entry after responses", func() bool { return inMDB(t, hosts, group) })
		check(t, m.Leave(group))
		eventually(t, "leave", func() bool { return w.count(capture.Leave, group) > 0 })
		eventually(t, "no entry after leave", func() bool { return !inMDB(t, hosts, group) })
		want := version[group.Is4()]
		for _, kind := range []capture.Kind{capture.Report, capture.Leave} {
			if got := w.versions(kind, group); len(got) != 1 || !got[want] {
				t.Errorf("%v: %s in %v, want %s", group, kind, got, want)
			}
		}
	}
}

// inMDB reports whether a switch has an entry for the group on port A.
func inMDB(t *testing.T, hosts *labtest.SwitchLab, group netip.Addr) bool {
	t.Helper()
	list, err := hosts.Bridge.MDB()
	check(t, err)
	return slices.Contains(list, lab.MDBEntry{Port: hosts.PortA, Group: group})
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

// TestMappedIsIPv4: an IPv4 group can be given as an IPv4-mapped IPv6 address, as in an MGID.
func TestMappedIsIPv4(t *testing.T) {
	host := pair(t).A
	m := open(t, host, Socket)
	check(t, m.Join(netip.MustParseAddr("::ffff:239.1.2.3")))
	if !isMember(t, host, ways[0].group) {
		t.Error("not a member of 239.1.2.3")
	}
	check(t, m.Leave(netip.MustParseAddr("239.1.2.3")))
}

// TestNamespaceOfTheCaller: without a path, the namespace is that of the calling thread. It must be the same in later
// calls, because an index denotes another interface in another namespace.
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
