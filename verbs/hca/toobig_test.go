// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"net"
	"os"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
)

// Packets that a router cannot forward are counted and logged, with an MTU that fits; connections that send larger
// packets there get an event.
func TestPacketsTooBigForARouter(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	addLink(t, hosts.B, netlink.NewVeth(attrs("eth1", 600)), true)
	check(t, hosts.B.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644) }))
	far := routeVia("10.77.0.2")
	addRoute(t, hosts.A, far, "10.99.0.0/16")
	link, err := hosts.B.Netlink().LinkByName("eth1")
	check(t, err)
	_, network, _ := net.ParseCIDR("10.99.0.0/16")
	check(t, hosts.B.Netlink().RouteAdd(&netlink.Route{Dst: network, LinkIndex: link.Attrs().Index}))
	var log logged
	s := newStation(t, open(t, hosts.A, log.option()))
	s.connected(verbs.QPTypeUC, "10.99.0.1") // whose path MTU is small
	large, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUC, SendCQ: s.cq, RecvCQ: s.cq, Cap: defaultCap()})
	check(t, err)
	check(t, large.Connect(&verbs.QPAttr{AHAttr: *s.route("10.99.0.1"), DestQPN: 5, PathMTU: wire.MTU1024}))
	s.post(s.send(1, s.ah("10.99.0.1"), &station{qp: s.qp}, s.piece(1, 1000)))
	expect(t, s.wait(1), ok(1))
	eventually(t, "the router's report", func() bool {
		all, err := s.device.Statistics()
		check(t, err)
		return all.TooBig == 1
	})
	s.awaitEvent(verbs.AsyncEvent{Type: verbs.EventPathMigErr, QP: large})
	eventually(t, "a line of the log", func() bool {
		return log.says("a router cannot forward") && log.says("mtu=600") && log.says("rdma_mtu=512")
	})
}
