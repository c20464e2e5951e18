// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/vishvananda/netlink"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		child()
		return
	}
	labtest.Main(m)
}

// ways lists the methods, with a group of each IP version that they support.
var ways = []struct {
	name   string
	via    Method
	group  netip.Addr
	marker netip.Addr // another group, to detect that earlier changes were processed
}{
	{"netlink", Netlink, netip.MustParseAddr("239.1.2.3"), netip.MustParseAddr("239.1.2.99")},
	{"socket IPv4", Socket, netip.MustParseAddr("239.1.2.4"), netip.MustParseAddr("239.1.2.98")},
	{"socket IPv6", Socket, netip.MustParseAddr("ff05::1:3"), netip.MustParseAddr("ff05::99")},
}

// pair creates two hosts on one wire, which repeat their reports within 20 ms instead of a second.
func pair(t testing.TB) *labtest.PairLab {
	t.Helper()
	hosts := &labtest.PairLab{A: labtest.New(t, "mcast-a"), B: labtest.New(t, "mcast-b")}
	for _, host := range []*lab.Namespace{hosts.A, hosts.B} {
		for _, knob := range []string{"ipv4/conf/default/igmpv2_", "ipv4/conf/default/igmpv3_", "ipv6/conf/default/mldv1_", "ipv6/conf/default/mldv2_"} {
			sysctl(t, host, knob+"unsolicited_report_interval", "20")
		}
	}
	check(t, lab.Veth(hosts.A, hosts.B, "eth0", "eth0"))
	check(t, hosts.A.AddAddress("eth0", "10.77.0.1/24"))
	check(t, hosts.A.AddAddress("eth0", "fd77::1/64"))
	check(t, hosts.B.AddAddress("eth0", "10.77.0.2/24"))
	check(t, hosts.B.AddAddress("eth0", "fd77::2/64"))
	eventually(t, "local route, which the kernel creates later", func() bool { return hasLocalRoute(t, hosts.A, netip.MustParseAddr("fd77::1")) })
	return hosts
}

func sysctl(t testing.TB, host *lab.Namespace, knob, value string) {
	t.Helper()
	check(t, host.Do(func() error {
		return os.WriteFile(filepath.Join("/proc/sys/net", knob), []byte(value), 0o644)
	}))
}

// open opens the memberships of a host's eth0 and closes them when the test ends.
func open(t testing.TB, host *lab.Namespace, via Method) *Memberships {
	t.Helper()
	return openWith(t, Config{Interface: "eth0", Namespace: host.Path(), Via: via, StateDir: t.TempDir()})
}

func openWith(t testing.TB, c Config) *Memberships {
	t.Helper()
	m, err := Open(c)
	check(t, err)
	t.Cleanup(func() { check(t, m.Close()) })
	return m
}

var (
	check, refused = errtest.Check, errtest.MustRefuse
	eventually     = waittest.Eventually
)

// isMember reports whether a host's kernel is a member of a group on eth0.
func isMember(t testing.TB, host *lab.Namespace, group netip.Addr) bool {
	t.Helper()
	return members(t, host)[group]
}

// members returns the groups of a host's eth0, as listed by its kernel.
func members(t testing.TB, host *lab.Namespace) map[netip.Addr]bool {
	t.Helper()
	groups := map[netip.Addr]bool{}
	check(t, host.Do(func() error {
		igmp, err := os.ReadFile("/proc/thread-self/net/igmp")
		if err != nil {
			return err
		}
		readIGMP(string(igmp), groups)
		mld, err := os.ReadFile("/proc/thread-self/net/igmp6")
		readMLD(string(mld), groups)
		return err
	}))
	return groups
}

// groupAddresses returns the addresses of eth0 that are the group's.
func groupAddresses(t testing.TB, host *lab.Namespace, group netip.Addr) (found []netlink.Addr) {
	t.Helper()
	list, err := host.Netlink().AddrList(eth0(t, host), netlink.FAMILY_V4)
	check(t, err)
	for _, address := range list {
		if address.IP.Equal(group.AsSlice()) {
			found = append(found, address)
		}
	}
	return found
}

func eth0(t testing.TB, host *lab.Namespace) netlink.Link {
	t.Helper()
	link, err := host.Netlink().LinkByName("eth0")
	check(t, err)
	return link
}

// hasLocalRoute reports whether a host has a route to exactly this address.
func hasLocalRoute(t testing.TB, host *lab.Namespace, address netip.Addr) bool {
	t.Helper()
	only := netip.PrefixFrom(address, address.BitLen()).String()
	return slices.ContainsFunc(routes(t, host), func(route string) bool { return strings.HasPrefix(route, only+" ") })
}

// logged is a log that tests can read.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
