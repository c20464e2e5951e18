// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/kernel"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/verbs/hca"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// examine runs doctor in a namespace and returns the findings by subject.
func examine(t *testing.T, ns *lab.Namespace, device string, args ...string) map[string]finding {
	t.Helper()
	args = append([]string{"doctor", "-d", device, "--netns", ns.Path(), "--socket", "/nonexistent", "-j"}, args...)
	_, stdout, stderr := cmdtest.Run(t, args...)
	var list []finding
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatalf("%v: %s, %s", err, stdout, stderr)
	}
	found := map[string]finding{}
	for _, f := range list {
		found[f.Subject] = f
	}
	return found
}

func expect(t *testing.T, found map[string]finding, subject string, want severity, text string) {
	t.Helper()
	if f := found[subject]; f.Severity != want || !strings.Contains(f.Seen, text) {
		t.Errorf("%s: %+v, want %s with %q", subject, f, want, text)
	}
}

// inside runs a function with a netlink handle of the namespace.
func inside(t *testing.T, ns *lab.Namespace, fn func(nl *netlink.Handle, eth0 netlink.Link) error) {
	t.Helper()
	if err := ns.Do(func() error { return fn(ns.Netlink(), cmdtest.Eth0(t, ns)) }); err != nil {
		t.Fatal(err)
	}
}

// TestPair examines two hosts on a healthy veth pair, then with one fault after the other.
func TestPair(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	found := examine(t, hosts.A, "eth0")
	expect(t, found, "capabilities", good, "is allowed to use XDP")
	expect(t, found, "service", note, "not running")
	expect(t, found, "eth0", good, "is up")
	expect(t, found, "eth0 addresses", good, "10.77.0.1 is the default")
	expect(t, found, "eth0 MTU", note, "RDMA MTU 1024")
	if kernel.Before(kernel.Release(), 6, 3) {
		expect(t, found, "eth0 driver", note, "the kernel does not report XDP features (needs Linux 6.3)")
	} else {
		expect(t, found, "eth0 driver", note, "native XDP; AF_XDP without zero-copy")
	}
	expect(t, found, "eth0 queues", good, "one")
	expect(t, found, "groups", good, "0 IPv4 groups")
	expect(t, found, "firewall", good, "no rules")

	expect(t, found, "network", good, "uses XDP")
	if host.HasSoftRoCE() {
		expect(t, found, "UDP port 4791", note, "free, but Soft-RoCE (rdma_rxe) is loaded")
	} else {
		expect(t, found, "UDP port 4791", good, "free")
	}

	d, err := card.Open("eth0", hosts.A.Path(), slog.New(slog.DiscardHandler), hca.WithNetwork(hca.NetworkUDP))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, examine(t, hosts.A, "eth0"), "UDP port 4791", problem, "no device can be opened") // used by this test process, which is not named roced
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, err = card.Open("eth0", hosts.A.Path(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, examine(t, hosts.A, "eth0"), "eth0 XDP", note, "is attached to eth0")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	cmdtest.SetMTU(t, hosts.B, 1000)
	expect(t, examine(t, hosts.B, "eth0"), "eth0 MTU", warning, "RDMA MTU 512")
	cmdtest.RemoveAddress(t, hosts.A, "10.77.0.1/24")
	expect(t, examine(t, hosts.A, "eth0"), "eth0 addresses", note, "only IPv6")
	cmdtest.RemoveAddress(t, hosts.A, "fd77::1/64")
	expect(t, examine(t, hosts.A, "eth0"), "eth0 addresses", warning, "only link-local")
	inside(t, hosts.B, func(nl *netlink.Handle, eth0 netlink.Link) error { return nl.LinkSetDown(eth0) })
	expect(t, examine(t, hosts.A, "eth0"), "eth0", problem, "no carrier")
	inside(t, hosts.A, func(nl *netlink.Handle, eth0 netlink.Link) error { return nl.LinkSetDown(eth0) })
	expect(t, examine(t, hosts.A, "eth0"), "eth0", problem, "is down")
	expect(t, examine(t, hosts.A, "lo"), "lo", problem, "")
	expect(t, examine(t, hosts.A, "nope"), "nope", problem, "interface not found")
}

func TestGroupsNearTheLimit(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	inside(t, hosts.A, func(nl *netlink.Handle, eth0 netlink.Link) error {
		for i := range 17 {
			group, err := netlink.ParseAddr(fmt.Sprintf("239.1.1.%d/32", i))
			if err != nil {
				return err
			}
			group.Flags = unix.IFA_F_MCAUTOJOIN
			if err := nl.AddrAdd(eth0, group); err != nil {
				return err
			}
		}
		return nil
	})
	found := examine(t, hosts.A, "eth0")
	expect(t, found, "groups", warning, "17 IPv4 groups are joined by addresses (limit 20")
	expect(t, found, "eth0 addresses", good, "10.77.0.1")
}

func TestFirewall(t *testing.T) {
	needs.Tools(t, "iptables")
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct {
		rule string
		want severity
		says string
	}{
		{"-A INPUT -p udp --dport 4791 -j DROP", note, "port 4791"},
		{"-F", good, "no rules"},
		{"-P OUTPUT DROP", warning, "do not see memberships"},
		{"-A OUTPUT -p igmp -j ACCEPT", good, "no rules"},
	} {
		if err := hosts.A.Do(func() error {
			out, err := needs.Command(t, "iptables", strings.Fields(row.rule)...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		expect(t, examine(t, hosts.A, "eth0"), "firewall", row.want, row.says)
	}
}

// TestSnooping uses a bridge in the host's own namespace, and queries from a switch.
func TestSnooping(t *testing.T) {
	t.Parallel()
	ns := labtest.New(t, "labtest")
	nl := ns.Netlink()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "br0"
	if err := nl.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		t.Fatal(err)
	}
	expect(t, examine(t, ns, "br0"), "snooping", warning, "bridge br0 snoops without a querier")

	hosts := labtest.Switched(t)
	expect(t, examine(t, hosts.A, "eth0", "--listen", "1m"), "querier", good, "IGMP and MLD")
	expect(t, examine(t, labtest.Pair(t).A, "eth0", "--listen", "100ms"), "querier", warning, "no IGMP and no MLD query in 100ms")
}

func TestReport(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	args := []string{"doctor", "-d", "eth0", "--netns", hosts.A.Path(), "--socket", "/nonexistent"}
	code, stdout, stderr := cmdtest.Run(t, args...)
	if code != 0 || stderr != "" || !strings.Contains(stdout, "\n                        → for RDMA MTU 4096: ip link set dev eth0 mtu 4200") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	inside(t, hosts.A, func(nl *netlink.Handle, eth0 netlink.Link) error { return nl.LinkSetDown(eth0) })
	cmdtest.CheckFailure(t, args, cli.ExitFailed, "1 problem found, see above")
	cmdtest.CheckFailure(t, []string{"doctor", "--listen", "1s"}, cli.ExitUsage, "--listen requires -d")
	cmdtest.CheckFailure(t, []string{"doctor", "x"}, cli.ExitUsage, "no argument")
}

// TestUnprivilegedUser checks the report for an unprivileged user: the network that a device would use, and the
// missing capabilities. With --network udp none is missing.
func TestUnprivilegedUser(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	run := func(args ...string) (code int, stdout string) {
		t.Helper()
		c := cmdtest.Command(t, append([]string{"doctor", "-d", "eth0", "--socket", "/no/such.sock"}, args...)...)
		c.AsNobody(t)
		if err := hosts.A.Do(func() error { c.Start(t); return nil }); err != nil {
			t.Fatal(err)
		}
		return c.End(t)
	}
	code, stdout := run()
	for _, want := range []string{"not allowed to use XDP: missing CAP_NET_RAW", "by default a device uses UDP sockets because XDP is not available (missing CAP_NET_RAW", "UDP port 4791    free"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d: %q is not in\n%s", code, want, stdout)
		}
	}
	if code, stdout := run("--network", "udp"); code != 0 || strings.Contains(stdout, "CAP_") || !strings.Contains(stdout, "UDP sockets, as requested") {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
	if code, stdout := run("--network", "xdp"); code != 1 || !strings.Contains(stdout, "problem") {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
}

// TestUserNamespaceRoot: root of a user namespace has all capabilities, which are not sufficient for XDP.
func TestUserNamespaceRoot(t *testing.T) {
	t.Parallel()
	needs.UserNamespace(t)
	c := cmdtest.Command(t, "doctor", "--socket", "/no/such.sock")
	c.AsNobody(t)
	c.AsRootOfUserNamespace()
	if err := c.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	code, stdout := c.End(t)
	if code != 0 || !strings.Contains(stdout, "rejects XDP programs") || !strings.Contains(stdout, "by default a device uses UDP sockets") || !strings.Contains(stdout, "ip link set dev lo up") {
		t.Errorf("exit code %d: %s\n%s", code, c.Said(), stdout)
	}
}

// TestLeftovers: settings that a killed process left on the interface are reported with the command that
// removes them. Settings of an open device are not reported.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	const left = "eth0 leftovers"
	group, err := netlink.ParseAddr("239.1.2.3/32 eth0:roced")
	if err != nil {
		t.Fatal(err)
	}
	group.Flags = unix.IFA_F_MCAUTOJOIN | unix.IFA_F_NOPREFIXROUTE
	inside(t, hosts.A, func(nl *netlink.Handle, eth0 netlink.Link) error { return nl.AddrAdd(eth0, group) })
	found := examine(t, hosts.A, "eth0")
	expect(t, found, left, warning, "the address of group 239.1.2.3")
	if do := found[left].Do; !strings.Contains(do, "ip address del 239.1.2.3/32 dev eth0") {
		t.Errorf("the remedy is %q", do)
	}
	d, err := card.Open("eth0", hosts.A.Path(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if f, is := examine(t, hosts.A, "eth0")[left]; is {
		t.Errorf("beside an open device: %+v", f)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	inside(t, hosts.A, func(nl *netlink.Handle, eth0 netlink.Link) error { return nl.AddrDel(eth0, group) })
	if f, is := examine(t, hosts.A, "eth0")[left]; is {
		t.Errorf("with nothing left: %+v", f)
	}
}
