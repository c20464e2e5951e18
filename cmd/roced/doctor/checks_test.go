// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/internal/capability"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/unit"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// healthy returns facts for which all findings are ok.
func healthy() *facts {
	link := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "eth0", MTU: 4200, RawFlags: unix.IFF_UP | unix.IFF_RUNNING, EncapType: "ether"}}
	return &facts{
		network: hca.NetworkAuto, loopbackUp: true, release: "6.12.1-amd64", locked: minLocked, devices: []daemon.Device{{Name: "eth0", Why: "no such device"}}, name: "eth0", link: link, base: link,
		addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, features: xdpFeatures{true, xdpBasic | xdpRedirect | xskZeroCopy | rxSG, 8},
		queues: 1, groupLimit: 20, listened: 1, queries: map[string]bool{igmp: true, mld: true},
	}
}

func TestHealthy(t *testing.T) {
	for _, f := range checks(healthy()) {
		if f.Severity != good || f.Do != "" {
			t.Errorf("%+v", f)
		}
	}
}

// TestLoopbackHasNoNetwork: no network is reported as usable for the loopback interface.
func TestLoopbackHasNoNetwork(t *testing.T) {
	for _, network := range []hca.Network{hca.NetworkAuto, hca.NetworkXDP, hca.NetworkUDP} {
		f := healthy()
		f.network = network
		f.link.Attrs().RawFlags |= unix.IFF_LOOPBACK
		f.link.Attrs().EncapType = "loopback"
		for _, one := range checks(f) {
			if one.Subject == "network" {
				t.Errorf("%s: %+v", network, one)
			}
		}
	}
}

// TestFaults: each fault causes exactly one finding, with a remedy.
func TestFaults(t *testing.T) {
	own := func(h host.PortHolder) []host.PortHolder { return []host.PortHolder{h} }
	holder := host.PortHolder{Address: netip.MustParseAddr("10.0.0.1"), Program: "x (process 5)"}
	softRoCE := host.PortHolder{Address: netip.IPv4Unspecified(), User: "0", Kernel: true}
	attrs := func(f *facts) *netlink.LinkAttrs { return f.link.Attrs() }
	for _, row := range []struct {
		name  string
		fault func(*facts)
		want  severity
		says  string
		do    string
	}{
		{"old kernel", func(f *facts) { f.release = "5.10.0" }, problem, "Linux 5.10.0", "6.1 or newer"},
		{"kernel without packet trains", func(f *facts) { f.release = "6.1.0-56" }, note, "no packet trains (need 6.2)", ""},
		{"kernel without long frames", func(f *facts) { f.release = "6.5.13" }, note, "RDMA MTU limited to 2048", ""},
		{"no AF_XDP", func(f *facts) { f.xdpSocket = unix.EAFNOSUPPORT }, warning, "no AF_XDP sockets", "CONFIG_XDP_SOCKETS"},
		{"AF_XDP forbidden", func(f *facts) { f.xdpSocket = unix.EACCES }, warning, "permission denied", "RestrictAddressFamilies"},
		{"capabilities", func(f *facts) { f.missing, f.xdpSocket = []capability.Capability{capability.BPF}, unix.EPERM }, warning, "missing CAP_BPF", "as root"},
		{"user namespace", func(f *facts) { f.program = unix.EPERM }, warning, "rejects XDP programs", "UDP sockets"},
		{"locked memory", func(f *facts) { f.locked = 8 << 20 }, warning, "locked memory is 8192 KiB", "LimitMEMLOCK"},
		{"a lower interface that answers ARP", func(f *facts) { f.answering = "eth1.5" }, warning, "arp_ignore is 0", "sysctl -w net.ipv4.conf.eth1/5.arp_ignore=1"},
		{"no service", func(f *facts) { f.service = unix.ENOENT }, note, "not running", unit.Start()},
		{"service denies this user", func(f *facts) { f.service = unix.EACCES }, warning, "no access", "usermod -aG"},
		{"service stopped", func(f *facts) { f.service = errNoResponse }, warning, "does not respond", "stopped"},
		{"service fails", func(f *facts) { f.service = errors.New("odd") }, warning, "odd", unit.Log()},
		{"no interface named", func(f *facts) { f.name, f.link = "", nil }, note, "no interface given", "-d eth0"},
		{"no interface", func(f *facts) { f.found, f.link = unix.ENODEV, nil }, problem, "interface not found", "ip link"},
		{"down", func(f *facts) { attrs(f).RawFlags = 0 }, problem, "is down", "ip link set dev eth0 up"},
		{"no carrier", func(f *facts) { attrs(f).RawFlags = unix.IFF_UP }, problem, "no carrier", "cable"},
		{"loopback", func(f *facts) { attrs(f).RawFlags |= unix.IFF_LOOPBACK }, problem, "loopback interface", "--loopback"},
		{"not Ethernet", func(f *facts) { f.network, attrs(f).EncapType = hca.NetworkXDP, "none" }, problem, "not an Ethernet", "--network udp"},
		{"XDP requested", func(f *facts) { f.network, f.missing = hca.NetworkXDP, []capability.Capability{capability.BPF} }, problem, "missing CAP_BPF", "as root"},
		{"lo down", func(f *facts) { f.network, f.loopbackUp = hca.NetworkUDP, false }, warning, "is down", "ip link set dev lo up"},
		{"port in use", func(f *facts) { f.network, f.holders = hca.NetworkUDP, own(holder) }, problem, "in use on 10.0.0.1 by x (process 5)", "stop it"},
		{"port used by roced", func(f *facts) {
			f.holders = own(host.PortHolder{Address: f.addresses[0], Program: "roced (process 5)"})
		}, note, "owns the interface", "its device"},
		{"port in use with XDP", func(f *facts) { f.holders = own(holder) }, problem, "in use on 10.0.0.1 by x (process 5)", "stop it"},
		{"port in use on all addresses", func(f *facts) {
			f.network, f.holders = hca.NetworkUDP, own(host.PortHolder{Address: netip.IPv4Unspecified(), User: "7"})
		}, problem, "a program of user 7", "stop it"},
		{"port in use on another interface's address", func(f *facts) { f.holders = own(host.PortHolder{Address: netip.MustParseAddr("10.9.9.9"), User: "7"}) }, note, "on 10.9.9.9", "stop it"},
		{"Soft-RoCE uses the port", func(f *facts) { f.network, f.holders = hca.NetworkUDP, own(softRoCE) }, problem, "rdma_rxe", "rdma link delete"},
		{"Soft-RoCE beside XDP", func(f *facts) { f.holders = own(softRoCE) }, warning, "only one of them", "rdma link delete"},
		{"Soft-RoCE loaded", func(f *facts) { f.softRoCE = true }, note, "is loaded", "one of them"},
		{"XDP program before UDP sockets", func(f *facts) {
			f.network, attrs(f).Xdp = hca.NetworkUDP, &netlink.LinkXdp{Attached: true, ProgId: 7}
		}, warning, "UDP sockets receive no packets", "its device"},
		{"rule before UDP sockets", func(f *facts) { f.network, f.rules = hca.NetworkUDP, "udp dport 4791 drop" }, note, "may drop packets", "nft"},
		{"no address", func(f *facts) { f.addresses = nil }, problem, "no GID", "ip address add"},
		{"link-local only", func(f *facts) { f.addresses = []netip.Addr{netip.MustParseAddr("fe80::1")} }, warning, "only link-local", "ip address add"},
		{"IPv6 only", func(f *facts) { f.addresses = []netip.Addr{netip.MustParseAddr("fd00::1")} }, note, "only IPv6", ""},
		{"MTU 1500", func(f *facts) { attrs(f).MTU = 1500 }, note, "1500: RDMA MTU 1024", "mtu 4200"},
		{"MTU of an interface on another", func(f *facts) {
			f.link = &netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "mv0", MTU: 1500, RawFlags: unix.IFF_UP | unix.IFF_RUNNING, EncapType: "ether"}}
		}, note, "1500: RDMA MTU 1024", "and first on the lower interface"},
		{"MTU 1000", func(f *facts) { attrs(f).MTU = 1000 }, warning, "1000: RDMA MTU 512", "mtu 1104"},
		{"MTU 300", func(f *facts) { attrs(f).MTU = 300 }, problem, "too small", "mtu 1500"},
		{"XDP program", func(f *facts) { attrs(f).Xdp = &netlink.LinkXdp{Attached: true, ProgId: 7} }, note, "program 7 is attached", "bpftool prog show id 7"},
		{"XDP program beside another namespace's eth0", func(f *facts) {
			attrs(f).Xdp, attrs(f).Index = &netlink.LinkXdp{Attached: true, ProgId: 7}, 3
			f.devices = []daemon.Device{{Name: "eth0", Attr: verbs.DeviceAttr{Name: "eth0"}, GIDs: []verbs.GIDEntry{{IfIndex: 4}}}}
		}, note, "program 7 is attached", "bpftool"},
		{"XDP features unknown", func(f *facts) { f.features = xdpFeatures{} }, note, "does not report", "roced perf"},
		{"no native XDP", func(f *facts) { f.features.bits = 0 }, note, "no native XDP", ""},
		{"no zero-copy", func(f *facts) { f.features.bits &^= xskZeroCopy }, note, "without zero-copy", "drivers of NICs"},
		{"no zero-copy of long frames", func(f *facts) { f.features.segments = 1 }, note, "two memory chunks", "mtu 2200"},
		{"no long frames", func(f *facts) { f.features.bits &^= rxSG }, warning, "RDMA MTU 4096", "smaller MTU"},
		{"queues", func(f *facts) { f.queues = 8 }, note, "8 receive queues", "combined 1"},
		{"too many queues", func(f *facts) { f.network, f.queues = hca.NetworkXDP, 1025 }, problem, "the limit is 1024", "combined 1024"},
		{"VLAN tags stripped", func(f *facts) { f.offloads, f.vlans = map[string]bool{vlanOffload: true}, []string{"eth0.7"} }, warning, "packets of eth0.7", "ethtool -K eth0 rxvlan off"},
		{"this VLAN's tags stripped", func(f *facts) {
			f.offloads, f.vlans = map[string]bool{vlanOffload: true}, []string{"eth0.7"}
			f.link = &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "eth0.7", MTU: 4200, RawFlags: unix.IFF_UP | unix.IFF_RUNNING, EncapType: "ether"}}
		}, problem, "cannot recognise packets of this VLAN", "ethtool -K eth0 rxvlan off"},
		{"groups", func(f *facts) { f.groupsByAddress = 16 }, warning, "16 IPv4 groups", "igmp_max_memberships=100"},
		{"nft rule", func(f *facts) { f.rules = "udp dport 4791 drop" }, note, "XDP runs before them", "switch"},
		{"nft set", func(f *facts) { f.rules = "udp dport { 53, 4791 } accept" }, note, "port 4791", "switch"},
		{"iptables rule", func(f *facts) { f.rules = "-A INPUT -p udp -m udp --dport 4791 -j DROP" }, note, "port 4791", "switch"},
		{"nft drops", func(f *facts) { f.rules = "type filter hook output priority filter; policy drop;" }, warning, "do not see memberships", "igmp accept"},
		{"iptables drops", func(f *facts) { f.rules = "*filter\n:OUTPUT DROP [0:0]\n" }, warning, "do not see memberships", "-p igmp"},
		{"input drops", func(f *facts) { f.rules = "*filter\n:INPUT DROP [0:0]\n" }, warning, "not answered", "INPUT -p igmp"},
		{"bridge without querier", func(f *facts) { f.bridge = &bridge{"br0", true, false} }, warning, "bridge br0 snoops", "mcast_querier 1"},
		{"not listened", func(f *facts) { f.listened = 0 }, note, "not checked", "--listen 130s"},
		{"no querier", func(f *facts) { f.queries = nil }, warning, "no IGMP and no MLD query", "querier"},
		{"no MLD querier", func(f *facts) { f.queries = map[string]bool{igmp: true} }, warning, "no MLD query", "querier"},
	} {
		f := healthy()
		row.fault(f)
		var found []finding
		for _, one := range checks(f) {
			if one.Severity != good {
				found = append(found, one)
			}
		}
		if len(found) != 1 || found[0].Severity != row.want || !strings.Contains(found[0].Seen, row.says) || !strings.Contains(found[0].Do, row.do) || (row.do == "") != (found[0].Do == "") {
			t.Errorf("%s: %+v", row.name, found)
		}
	}
}

// TestOneChunkIsEnough: zero-copy needs only one segment if frames fit one chunk.
func TestOneChunkIsEnough(t *testing.T) {
	f := healthy()
	f.features.segments, f.link.Attrs().MTU = 1, 2200
	if found := checkDriver(f); len(found) != 1 || found[0].Severity != good || !strings.Contains(found[0].Seen, "with zero-copy") {
		t.Errorf("%+v", found)
	}
}

// TestNetwork checks the reported network of a device, the reason, and the features that are lost.
func TestNetwork(t *testing.T) {
	for _, row := range []struct {
		network hca.Network
		fault   func(*facts)
		udp     bool
		says    string
	}{
		{hca.NetworkAuto, func(*facts) {}, false, "uses XDP: all requirements"},
		{hca.NetworkXDP, func(*facts) {}, false, "XDP, as requested"},
		{hca.NetworkUDP, func(*facts) {}, true, "no privileges needed; higher latency"},
		{hca.NetworkAuto, func(f *facts) { f.missing = []capability.Capability{capability.NetRaw, capability.BPF} }, true, "(missing CAP_NET_RAW, CAP_BPF); higher latency"},
		{hca.NetworkAuto, func(f *facts) { f.xdpSocket = unix.EAFNOSUPPORT }, true, "(AF_XDP sockets: address family not supported"},
		{hca.NetworkAuto, func(f *facts) { f.locked = 0 }, true, "not enough locked memory"},
		{hca.NetworkAuto, func(f *facts) { f.link.Attrs().EncapType = "none" }, true, "eth0 is not Ethernet"},
		{hca.NetworkAuto, func(f *facts) { f.queues = 1025 }, true, "more than 1024 receive queues"},
	} {
		f := healthy()
		f.network = row.network
		row.fault(f)
		found := checkNetwork(f)
		if f.overUDP() != row.udp || len(found) != 1 || found[0].Severity != good || !strings.Contains(found[0].Seen, row.says) {
			t.Errorf("%s, %q: over UDP %v: %+v", row.network, row.says, f.overUDP(), found)
		}
	}
}

// TestNoFault: states that resemble faults cause no finding.
func TestNoFault(t *testing.T) {
	for name, change := range map[string]func(*facts){
		"a bridge with a querier":   func(f *facts) { f.bridge = &bridge{"br0", true, true} },
		"a bridge without snooping": func(f *facts) { f.bridge = &bridge{"br0", false, false} },
		"tags stripped, no VLAN":    func(f *facts) { f.offloads = map[string]bool{vlanOffload: true} },
		"rules that accept IGMP":    func(f *facts) { f.rules = ":OUTPUT DROP [0:0]\n-A OUTPUT -p igmp -j ACCEPT\n" },
		"the service's program": func(f *facts) {
			f.link.Attrs().Xdp, f.link.Attrs().Index = &netlink.LinkXdp{Attached: true, ProgId: 7}, 3
			f.devices = []daemon.Device{{Name: "roce0", Attr: verbs.DeviceAttr{Name: "eth0"}, GIDs: []verbs.GIDEntry{{IfIndex: 3}}}}
		},
		"a device of the service": func(f *facts) {
			f.name, f.found, f.link = "loop", unix.ENODEV, nil
			f.devices = []daemon.Device{{Name: "loop"}}
		},
		"the service's port": func(f *facts) {
			f.link.Attrs().Index, f.holders = 3, []host.PortHolder{{Address: f.addresses[0], Program: "roced (process 5)"}}
			f.devices = []daemon.Device{{Name: "roce0", Attr: verbs.DeviceAttr{Name: "eth0"}, GIDs: []verbs.GIDEntry{{IfIndex: 3}}}}
		},
		"over UDP, a driver without XDP, and queues": func(f *facts) { f.network, f.features, f.queues = hca.NetworkUDP, xdpFeatures{}, 8 },
		"lo down beside XDP":                         func(f *facts) { f.loopbackUp = false },
		"a rule for another port":                    func(f *facts) { f.rules = "udp dport 14791 drop" },
		"unknown number of queues":                   func(f *facts) { f.queues = 0 },
	} {
		f := healthy()
		change(f)
		for _, one := range checks(f) {
			if one.Severity != good {
				t.Errorf("%s: %+v", name, one)
			}
		}
	}
}
