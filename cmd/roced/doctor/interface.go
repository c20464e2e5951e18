// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/roced/roced/internal/host"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func checkUp(f *facts) []finding {
	attrs := f.link.Attrs()
	switch {
	case attrs.RawFlags&unix.IFF_UP == 0:
		return report(f.name, problem, "is down", "ip link set dev "+f.name+" up")
	case attrs.RawFlags&unix.IFF_RUNNING == 0:
		return report(f.name, problem, "has no carrier", "check the cable, the switch port, or the other end of the veth pair")
	}
	return ok(f.name, "is up")
}

func checkKind(f *facts) []finding {
	attrs := f.link.Attrs()
	switch master := f.master(); {
	case f.isLoopback():
		return report(f.name, problem, "is a loopback interface, which supports neither XDP nor UDP sockets", "use another interface, or roced run --loopback")
	case attrs.EncapType != "ether" && !f.overUDP():
		return report(f.name, problem, "is not an Ethernet interface, but "+attrs.EncapType, "use an Ethernet interface, or --network udp")
	case master != nil && (master.Type() == "bond" || master.Type() == "team"):
		return report(f.name, problem, "is a slave of "+master.Attrs().Name, "use "+master.Attrs().Name+", which has the addresses")
	case master != nil && master.Type() == "bridge":
		return report(f.name, warning, "is a port of bridge "+master.Attrs().Name+", which has the host's addresses", "use "+master.Attrs().Name+", or a dedicated interface")
	}
	return nil
}

func (f *facts) isLoopback() bool {
	return f.link != nil && f.link.Attrs().RawFlags&unix.IFF_LOOPBACK != 0
}

func (f *facts) master() netlink.Link {
	if index := f.link.Attrs().MasterIndex; index > 0 {
		master, err := netlink.LinkByIndex(index)
		if err == nil {
			return master
		}
	}
	return nil
}

func checkAddresses(f *facts) []finding {
	routable := func(a netip.Addr) bool { return !a.IsLinkLocalUnicast() }
	switch {
	case len(f.addresses) == 0:
		return report(f.name+" addresses", problem, "none, so the device would have no GID", "ip address add 192.0.2.1/24 dev "+f.name)
	case !slices.ContainsFunc(f.addresses, routable):
		return report(f.name+" addresses", warning, "only link-local ones, which peers behind a router cannot reach", "ip address add 192.0.2.1/24 dev "+f.name)
	case !slices.ContainsFunc(f.addresses, netip.Addr.Is4):
		return report(f.name+" addresses", note, "only IPv6: peers that need an IPv4 GID cannot connect", "")
	}
	return ok(f.name+" addresses", fmt.Sprint(f.addresses[0], " is the default GID (roced show gid -d ", f.name, " lists all)"))
}

func checkLeftovers(f *facts) []finding { return f.left }

// checkARP applies to XDP only: UDP sockets also receive packets that arrive at the lower interface.
func checkARP(f *facts) []finding {
	if f.answering == "" || !slices.ContainsFunc(f.addresses, netip.Addr.Is4) {
		return nil
	}
	return report(f.name+" ARP", warning, "the lower interface "+f.answering+" also answers ARP for the addresses of this one (arp_ignore is 0), so packets sent to it are lost",
		host.ARPRemedy(f.answering))
}

func checkMTU(f *facts) []finding {
	mtu := f.link.Attrs().MTU
	rdma := rdmaMTU(mtu)
	seen := fmt.Sprintf("%d: RDMA MTU %d", mtu, rdma)
	switch {
	case rdma == 0:
		return report(f.name+" MTU", problem, fmt.Sprintf("%d is too small for any RDMA MTU", mtu), "ip link set dev "+f.name+" mtu 1500")
	case rdma < 1024:
		return report(f.name+" MTU", warning, seen+"; most programs expect 1024", fmt.Sprintf("ip link set dev %s mtu %d or more, on all hosts and switches%s", f.name, 1024+headers, f.lower()))
	case rdma < 4096:
		return report(f.name+" MTU", note, seen+fmt.Sprintf("; with 4096, packets carry %d times as many bytes and datagrams can be longer", 4096/rdma), fmt.Sprintf("for RDMA MTU 4096: ip link set dev %s mtu %d, on all hosts and switches%s", f.name, 4200, f.lower()))
	}
	return ok(f.name+" MTU", seen)
}

// lower returns a hint if the MTU is limited by that of the lower interface.
func (f *facts) lower() string {
	switch f.link.Type() {
	case "vlan", "macvlan", "macvtap", "ipvlan":
		return ", and first on the lower interface"
	}
	return ""
}

// checkAttached checks for an attached XDP program: an interface can have only one.
func checkAttached(f *facts) []finding {
	x := f.base.Attrs().Xdp
	if x == nil || !x.Attached {
		return nil
	}
	name := f.base.Attrs().Name
	if holder := f.holder(); holder != "" {
		return ok(f.name+" XDP", fmt.Sprintf("program %d on %s belongs to the service, which uses the interface for device %s", x.ProgId, name, holder))
	}
	if f.overUDP() {
		return report(f.name+" XDP", warning, fmt.Sprintf("program %d is attached to %s: if it belongs to another roced process, UDP sockets receive no packets", x.ProgId, name),
			"if so, use its device; otherwise --network udp")
	}
	return report(f.name+" XDP", note, fmt.Sprintf("program %d is attached to %s by another roced process or program", x.ProgId, name),
		fmt.Sprintf("bpftool prog show id %d; an interface can have only one", x.ProgId))
}

func checkDriver(f *facts) []finding {
	subject := f.name + " driver"
	switch {
	case !f.features.known:
		return report(subject, note, "the kernel does not report XDP features (needs Linux 6.3)", "roced perf shows the modes in use")
	case !f.features.has(xdpBasic | xdpRedirect):
		return report(subject, note, "no native XDP: generic XDP is used, which is slower", "")
	case !f.features.has(xskZeroCopy):
		return report(subject, note, "native XDP; AF_XDP without zero-copy: the kernel copies each frame",
			"no remedy for this interface; most drivers of NICs with 10 Gb/s or more support zero-copy, and igb and virtio_net since Linux 6.14")
	case rdmaMTU(f.link.Attrs().MTU) == 4096 && !f.features.has(rxSG):
		return report(subject, warning, "native XDP without multi-buffer frames, which RDMA MTU 4096 needs", "use --xdp generic or a smaller MTU")
	case rdmaMTU(f.link.Attrs().MTU) == 4096 && f.features.segments < 2:
		return report(subject, note, "native XDP; with RDMA MTU 4096 a packet needs two memory chunks, which the driver's zero-copy mode does not support: the kernel copies each frame",
			fmt.Sprintf("for zero-copy: ip link set dev %s mtu 2200 (RDMA MTU 2048)", f.base.Attrs().Name))
	}
	return ok(subject, "native XDP, AF_XDP with zero-copy")
}

// Limits of receive queues.
const (
	maxQueues = 1024    // per device
	frames    = 8 << 20 // memory per queue, in bytes
)

func checkQueues(f *facts) []finding {
	subject := f.name + " queues"
	name := f.base.Attrs().Name
	switch {
	case f.queues > maxQueues:
		return report(subject, problem, fmt.Sprintf("%d receive queues; the limit is %d", f.queues, maxQueues), fmt.Sprintf("ethtool -L %s combined %[2]d, or rx %[2]d", name, maxQueues))
	case f.queues > 1:
		return report(subject, note, fmt.Sprintf("%d receive queues: each needs a socket with up to %d MiB, and bursts are not sent as packet trains", f.queues, frames>>20),
			fmt.Sprintf("one queue is sufficient unless several workers are used: ethtool -L %s combined 1, or rx 1 tx 1", name))
	case f.queues == 1:
		return ok(subject, "one")
	}
	return nil
}

// vlanOffload is the driver feature that strips VLAN tags from received frames, so that XDP does not see
// them.
const vlanOffload = "rx-vlan-hw-parse"

func checkVLAN(f *facts) []finding {
	if !f.offloads[vlanOffload] || len(f.vlans) == 0 {
		return nil
	}
	name := f.base.Attrs().Name
	do := "ethtool -K " + name + " rxvlan off"
	if f.base != f.link {
		return report(f.name+" VLAN", problem, name+" strips tags from received frames, so XDP cannot recognise packets of this VLAN", do)
	}
	return report(f.name+" VLAN", warning, "strips tags from received frames, so packets of "+strings.Join(f.vlans, ", ")+" are treated as untagged", do)
}
