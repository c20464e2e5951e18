// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"net"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/internal/waittest"
	"github.com/vishvananda/netlink"
)

// args returns a command line of netdev in a namespace.
func args(ns *lab.Namespace, rest string) []string {
	return append([]string{"netdev", "-d", "eth0", "--netns", ns.Path(), "--name", "ip0"}, strings.Fields(rest)...)
}

const (
	addressA = "--address 192.168.7.1/24 --address fd07::1/64 "
	addressB = "--address 192.168.7.2/24 --address fd07::2/64 "
	says     = "interface ip0, MTU "
)

// hasLink reports whether a host has the interface.
func hasLink(ns *lab.Namespace) bool {
	_, err := ns.Netlink().LinkByName("ip0")
	return err == nil
}

// TestNetdev: ping of both versions, groups, and TCP work over each kind of network; nothing is left behind.
func TestNetdev(t *testing.T) {
	needs.Root(t)
	needs.TUN(t)
	for _, way := range []string{"--network xdp", "--network udp", "--network udp --mtu 9000"} {
		t.Run(way, func(t *testing.T) {
			hosts := labtest.Pair(t)
			a := cmdtest.Start(t, args(hosts.A, addressA+way)...)
			b := cmdtest.Start(t, args(hosts.B, addressB+way)...)
			a.Await(t, says)
			cmdtest.CheckSays(t, b.Await(t, says), "network 0, group 239.192.0.0, Q_Key 0x0b1b0000, over ")
			for _, to := range []string{"192.168.7.2", "fd07::2", "ff02::1%ip0"} {
				for _, size := range []int{56, 1000, 1200} {
					ping(t, hosts.A, to, size)
				}
			}
			ping(t, hosts.B, "192.168.7.1", 56)
			multicast(t, hosts.A, hosts.B, "ip0", "ff02::7777")
			routeGroups(t, hosts.A)
			multicast(t, hosts.A, hosts.B, "ip0", "239.7.7.7")
			for _, to := range []string{"192.168.7.2", "fd07::2"} {
				t.Logf("TCP: %.0f MB/s", bulk(t, hosts.A, hosts.B, to, int64(waittest.Often(64))<<20)/1e6)
			}
			for _, command := range []*cmdtest.Background{a, b} {
				cmdtest.CheckSays(t, command.End(t), "sent ", "; dropped: ")
			}
			waittest.Eventually(t, "the interfaces are removed", func() bool { return !hasLink(hosts.A) && !hasLink(hosts.B) })
		})
	}
}

// routeGroups routes a host's packets to groups over the interface.
func routeGroups(t *testing.T, ns *lab.Namespace) {
	t.Helper()
	index, err := ns.Index("ip0")
	check(t, err)
	_, groups, err := net.ParseCIDR("239.0.0.0/8")
	check(t, err)
	check(t, ns.Netlink().RouteAdd(&netlink.Route{LinkIndex: index, Dst: groups}))
}

// TestKilled: a killed process leaves nothing behind, and the other host finds a restarted one.
func TestKilled(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	needs.TUN(t)
	hosts := labtest.Pair(t)
	cmdtest.Start(t, args(hosts.A, addressA)...).Await(t, says)
	for range 3 {
		b := cmdtest.Command(t, args(hosts.B, addressB)...)
		b.Start(t)
		b.Await(t, says)
		t.Logf("answered after %d", ping(t, hosts.A, "192.168.7.2", 56))
		check(t, b.Process.Kill())
		b.Wait()
		waittest.Eventually(t, "the interface is removed", func() bool { return !hasLink(hosts.B) })
	}
}

// TestFlood: while one host floods known and unknown hosts, others still communicate.
func TestFlood(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	needs.TUN(t)
	hosts := labtest.Pair(t)
	a := cmdtest.Start(t, args(hosts.A, "--neighbours 64 "+addressA)...)
	b := cmdtest.Start(t, args(hosts.B, addressB)...)
	a.Await(t, says)
	b.Await(t, says)
	conn := in(t, hosts.A, func() (*net.UDPConn, error) { return net.ListenUDP("udp4", nil) })
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { stopped <- n }()
		for p := make([]byte, 1200); ; n++ {
			select {
			case <-stop:
				return
			default: // no host has most of the addresses
				_, _ = conn.WriteToUDP(p, &net.UDPAddr{IP: net.IPv4(192, 168, 7, byte(2+n%250)), Port: 9})
			}
		}
	}()
	for range waittest.Often(5) {
		ping(t, hosts.A, "192.168.7.2", 56)
		ping(t, hosts.B, "fd07::1", 56)
	}
	close(stop)
	t.Log("sent", <-stopped)
	check(t, conn.Close())
	cmdtest.CheckSays(t, a.End(t), "waiting ")
	b.End(t)
}

// TestMTUFollows: the interface's MTU follows the maximum datagram, even if the network below has a larger
// MTU.
func TestMTUFollows(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	needs.TUN(t)
	hosts := labtest.Pair(t)
	cmdtest.CheckSays(t, cmdtest.Start(t, args(hosts.A, "--network udp "+addressA)...).Await(t, says), "MTU 1280:")
	cmdtest.Start(t, args(hosts.B, "--network udp "+addressB)...).Await(t, says)
	cmdtest.SetMTU(t, hosts.A, 9000)
	cmdtest.SetMTU(t, hosts.B, 9000)
	waittest.Eventually(t, "the larger MTU", func() bool {
		ping(t, hosts.A, "192.168.7.2", 56)
		link, err := hosts.A.Netlink().LinkByName("ip0")
		check(t, err)
		return link.Attrs().MTU == 4092
	})
	ping(t, hosts.A, "192.168.7.2", 4000)
}

// TestOverAService: two hosts share only the service's in-memory network.
func TestOverAService(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	needs.TUN(t)
	socket := cmdtest.ServeMemory(t)
	a, b := labtest.New(t, "labtest-a"), labtest.New(t, "labtest-b")
	over := func(ns *lab.Namespace, device, addresses string) {
		rest := strings.Fields("-d " + device + " --service=" + socket + " " + addresses)
		cmdtest.Start(t, append([]string{"netdev", "--netns", ns.Path(), "--name", "ip0"}, rest...)...).Await(t, says)
	}
	over(a, "left", addressA)
	over(b, "right", addressB)
	ping(t, a, "192.168.7.2", 56)
	ping(t, b, "fd07::1", 1200)
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	usage := func(rest string, want ...string) {
		t.Helper()
		cmdtest.CheckFailure(t, strings.Fields("netdev -d none0 "+rest), cli.ExitUsage, want...)
	}
	usage("--address 10.0.0.1", "prefix length, such as 192.168.7.1/24", "10.0.0.1")
	usage("--id 65536", "--id must be 0 to 65535: 65536")
	usage("--mtu 67", "--mtu must be", ": 67")
	usage("--neighbours 0", "--neighbours must be 1 to 1048576: 0")
	usage("--group 10.0.0.1", "10.0.0.1")
	cmdtest.CheckFailure(t, []string{"netdev"}, cli.ExitUsage, "-d")
}
