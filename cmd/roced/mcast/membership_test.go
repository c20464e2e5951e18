// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// groupAddresses returns the groups that are addresses of eth0.
func groupAddresses(t *testing.T, ns *lab.Namespace) (groups []string) {
	t.Helper()
	link, err := ns.Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	list, err := ns.Netlink().AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if a.IP.IsMulticast() {
			groups = append(groups, a.IP.String())
		}
	}
	return groups
}

func TestMcastMembership(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for method, want := range map[string]int{"auto": 1, "netlink": 1, "socket": 0} {
		receiver := listen(t, hosts.A, testGroup4+" --membership "+method)
		if groups := groupAddresses(t, hosts.A); len(groups) != want {
			t.Errorf("%s: groups as addresses %q, want %d", method, groups, want)
		}
		cmdtest.CheckSays(t, receiver.End(t), "received 0 messages", "Nothing received?")
		if groups := groupAddresses(t, hosts.A); len(groups) != 0 {
			t.Errorf("%s: left behind: %q", method, groups)
		}
	}
}

func TestMcastRuntimeErrors(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	cmdtest.CheckFailure(t, mcastArgs(hosts.A, testGroup4+" -d nope"), cli.ExitFailed, "no interface", "ip link")
	cmdtest.CheckFailure(t, mcastArgs(hosts.A, testGroup4+" --netns no-such-namespace"), cli.ExitFailed, "no-such-namespace", "ip netns list")
	cmdtest.CheckFailure(t, mcastArgs(hosts.A, testGroup4+" --send --size 1025"), cli.ExitFailed, "RDMA MTU, which is 1024")
	cmdtest.CheckFailure(t, mcastArgs(hosts.A, testGroup4+" --send -g 14"), cli.ExitFailed, "the GID table of eth0 has 0 (10.77.0.1), 1 (fd77::1)")
	receiver := listen(t, hosts.A, testGroup4)
	cmdtest.CheckFailure(t, mcastArgs(hosts.A, testGroup4), cli.ExitFailed, "another XDP program")
	receiver.End(t)
}

// TestMcastWithoutAddress: a receiver needs no address, as on a mirror port. A sender needs one.
func TestMcastWithoutAddress(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	cmdtest.RemoveAddress(t, hosts.A, "10.77.0.1/24")
	cmdtest.CheckFailure(t, mcastArgs(hosts.A, testGroup4+" --send"), cli.ExitFailed, "no address", "ip addr add")
	cmdtest.CheckFailure(t, mcastArgs(hosts.A, testGroup4+" --send --send-only"), cli.ExitFailed, "no address", "ip address add")
	receiver := listen(t, hosts.A, testGroup4+" --count 1")
	send(t, hosts.B, testGroup4+" --send-only -n 1")
	code, got := receiver.Wait()
	cmdtest.CheckSays(t, got, "10.77.0.2 QP", "received 1 message")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, receiver.Stderr())
	}
}

// TestMcastZone: ff02::1 is a different group on each interface, selected by the zone.
func TestMcastZone(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	receiver := listen(t, hosts.A, "ff02::77%eth0 --count 1")
	send(t, hosts.B, "ff02::77%eth0 --send-only -n 1")
	if code, got := receiver.Wait(); code != 0 || !strings.Contains(got, "100 bytes to ff02::77") {
		t.Errorf("exit code %d: %s%s", code, got, receiver.Stderr())
	}
}

func TestMcastWithoutPrivileges(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	c := cmdtest.Command(t, mcastArgs(hosts.A, testGroup4)...)
	c.StartWithout(t, unix.CAP_SYS_ADMIN)
	if code, _ := c.End(t); code != cli.ExitFailed || !strings.Contains(c.Said(), "CAP_SYS_ADMIN") {
		t.Errorf("exit code %d: %s", code, c.Said())
	}
}

// TestMcastIsInterrupted: the exit code after SIGINT is 0 if the command runs until then, otherwise that of the signal.
func TestMcastIsInterrupted(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for args, want := range map[string]int{
		"":                                      0,
		"--count 1000":                          cli.ExitSignal + int(unix.SIGINT),
		"--send --count 0 --rate 1":             0,
		"--send --count 0 --quiet":              0,
		"--send --count 0 --send-only":          0,
		"--send --count 1000 --rate 1":          cli.ExitSignal + int(unix.SIGINT),
		"--send --count 1000000000 --send-only": cli.ExitSignal + int(unix.SIGINT),
	} {
		c := cmdtest.Command(t, mcastArgs(hosts.A, testGroup4+" "+args)...)
		c.Start(t)
		c.Await(t, listening)
		c.Process.Signal(unix.SIGINT)
		code, rest := c.End(t)
		if code != want || !strings.Contains(rest, "dropped: none") {
			t.Errorf("%q: exit code %d, want %d: %s%s", args, code, want, c.Said(), rest)
		}
		if groups := groupAddresses(t, hosts.A); len(groups) != 0 {
			t.Errorf("%q: left behind: %q", args, groups)
		}
	}
}

func TestMcastOutputIsClosed(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	c := cmdtest.Command(t, mcastArgs(hosts.A, testGroup4+" --send -n 0")...)
	c.Start(t)
	c.Await(t, listening)
	c.CloseOutput()
	if code, _ := c.End(t); code != cli.ExitSignal+int(unix.SIGPIPE) || c.Said() != "" {
		t.Errorf("exit code %d: %s", code, c.Said())
	}
}
