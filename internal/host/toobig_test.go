// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const testPort = 4791

// router makes B a router to networks behind a link with a small MTU, and adds a route through it to A.
func router(t *testing.T, mtu int) *labtest.PairLab {
	t.Helper()
	hosts := labtest.Pair(t)
	behind := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth1"}, PeerName: "eth2"}
	check(t, hosts.B.Netlink().LinkAdd(behind))
	for _, name := range []string{"eth1", "eth2"} {
		link, err := hosts.B.Netlink().LinkByName(name)
		check(t, err)
		check(t, hosts.B.Netlink().LinkSetMTU(link, mtu))
		check(t, hosts.B.Netlink().LinkSetUp(link))
	}
	check(t, hosts.B.Do(func() error {
		for _, knob := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
			if err := os.WriteFile(filepath.Join("/proc/sys/net", knob), []byte("1"), 0o644); err != nil {
				return err
			}
		}
		return nil
	}))
	for dest, gateway := range map[string]string{"10.99.0.0/16": "10.77.0.2", "fd99::/64": "fd77::2"} {
		_, network, _ := net.ParseCIDR(dest)
		check(t, hosts.A.Netlink().RouteAdd(&netlink.Route{Dst: network, Gw: net.ParseIP(gateway)}))
		check(t, hosts.B.Netlink().RouteAdd(&netlink.Route{Dst: network, LinkIndex: index(t, hosts.B, "eth1")}))
	}
	return hosts
}

// sendDatagram sends a datagram that must not be fragmented, from an unused port.
func sendDatagram(t *testing.T, from *lab.Namespace, dest string, port, length int) {
	t.Helper()
	check(t, from.Do(func() error {
		conn, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.ParseIP(dest), Port: port})
		if err != nil {
			return err
		}
		defer conn.Close()
		raw, err := conn.SyscallConn()
		if err != nil {
			return err
		}
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
		})
		_, err = conn.Write(make([]byte, length))
		return err
	}))
}

// TestRouterReports: a router's report about a packet to the port is received, a report about another port is not.
func TestRouterReports(t *testing.T) {
	hosts := router(t, 1300)
	var r *Routers
	check(t, hosts.A.Do(func() (err error) { r, err = ListenToRouters(testPort); return err }))
	reports, ended := make(chan TooBig, 8), make(chan struct{})
	go func() {
		defer close(ended)
		r.Listen(func(b TooBig) { reports <- b })
	}()
	for _, row := range []struct{ source, dest string }{{"10.77.0.1", "10.99.0.1"}, {"fd77::1", "fd99::1"}} {
		sendDatagram(t, hosts.A, row.dest, testPort+1, 1400)
		sendDatagram(t, hosts.A, row.dest, testPort, 1400)
		want := TooBig{netip.MustParseAddr(row.source), netip.MustParseAddr(row.dest), 1300}
		if got := <-reports; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	check(t, r.Close())
	<-ended
	if len(reports) != 0 {
		t.Errorf("also got %+v", <-reports)
	}
}

// FuzzTooBig: messages of any content do not crash the parsers.
func FuzzTooBig(f *testing.F) {
	f.Add([]byte{0x45}, []byte{2})
	f.Fuzz(func(_ *testing.T, v4, v6 []byte) {
		parseTooBigV4(v4)
		parseTooBigV6(v6)
	})
}
