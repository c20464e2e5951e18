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
		return says(f.name, problem, "is down", "ip link set dev "+f.name+" up")
	case attrs.RawFlags&unix.IFF_RUNNING == 0:
		return says(f.name, problem, "has no carrier", "look at the cable, the switch's port, or the other end of a veth pair")
	}
	return ok(f.name, "is up")
}

func checkKind(f *facts) []finding {
	attrs := f.link.Attrs()
	switch master := f.master(); {
	case f.isLoopback():
		return says(f.name, problem, "is a loopback interface, on which no device can be opened: neither XDP nor UDP sockets work there", "use another interface, or roced run --loopback")
	case attrs.EncapType != "ether" && !f.overUDP():
		return says(f.name, problem, "is not Ethernet but "+attrs.EncapType, "use an Ethernet interface, or --network udp")
	case master != nil && (master.Type() == "bond" || master.Type() == "team"):
		return says(f.name, problem, "is a slave of "+master.Attrs().Name, "use "+master.Attrs().Name+": it has the addresses")
	case master != nil && master.Type() == "bridge":
		return says(f.name, warning, "is a port of bridge "+master.Attrs().Name+", so the host's addresses are the bridge's", "use "+master.Attrs().Name+", or an interface of its own")
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
		return says(f.name+" addresses", problem, "none, so there is no GID", "ip address add 192.0.2.1/24 dev "+f.name)
	case !slices.ContainsFunc(f.addresses, routable):
		return says(f.name+" addresses", warning, "link-local ones alone, which peers behind a router do not reach", "ip address add 192.0.2.1/24 dev "+f.name)
	case !slices.ContainsFunc(f.addresses, netip.Addr.Is4):
		return says(f.name+" addresses", note, "IPv6 alone: peers that look for an IPv4 GID find none", "")
	}
	return ok(f.name+" addresses", fmt.Sprint(f.addresses[0], " is the default GID's; roced show gid -d ", f.name, " lists all"))
}

func checkLeftovers(f *facts) []finding { return f.left }

// checkARP is about XDP: UDP sockets get packets of the lower interface too.
func checkARP(f *facts) []finding {
	if f.answering == "" || !slices.ContainsFunc(f.addresses, netip.Addr.Is4) {
		return nil
	}
	return says(f.name+" ARP", warning, f.answering+", the interface below, answers ARP for this one's addresses too (arp_ignore is 0), and packets that are then sent there do not arrive here",
		host.ARPRemedy(f.answering))
}

func checkMTU(f *facts) []finding {
	mtu := f.link.Attrs().MTU
	rdma := rdmaMTU(mtu)
	seen := fmt.Sprintf("%d: RDMA MTU %d", mtu, rdma)
	switch {
	case rdma == 0:
		return says(f.name+" MTU", problem, fmt.Sprintf("%d is too small for any RDMA MTU", mtu), "ip link set dev "+f.name+" mtu 1500")
	case rdma < 1024:
		return says(f.name+" MTU", warning, seen+"; most programs expect 1024", fmt.Sprintf("ip link set dev %s mtu %d or more, on all hosts and switches%s", f.name, 1024+headers, f.lower()))
	case rdma < 4096:
		return says(f.name+" MTU", note, seen+fmt.Sprintf("; 4096 carries %d times the bytes a packet, and longer datagrams", 4096/rdma), fmt.Sprintf("for RDMA MTU 4096: ip link set dev %s mtu %d, on all hosts and switches%s", f.name, 4200, f.lower()))
	}
	return ok(f.name+" MTU", seen)
}

// lower says that an interface carries no more than the one that it is on.
func (f *facts) lower() string {
	switch f.link.Type() {
	case "vlan", "macvlan", "macvtap", "ipvlan":
		return ", first of the interface that it is on"
	}
	return ""
}

// checkAttached: an interface has one XDP program.
func checkAttached(f *facts) []finding {
	x := f.base.Attrs().Xdp
	if x == nil || !x.Attached {
		return nil
	}
	name := f.base.Attrs().Name
	if holder := f.holder(); holder != "" {
		return ok(f.name+" XDP", fmt.Sprintf("program %d on %s is that of the service, whose device %s has the interface", x.ProgId, name, holder))
	}
	if f.overUDP() {
		return says(f.name+" XDP", warning, fmt.Sprintf("program %d is attached to %s: if it is a roced's, UDP sockets get no packets", x.ProgId, name),
			"use that roced's device; if it is another program, --network udp uses UDP sockets nonetheless")
	}
	return says(f.name+" XDP", note, fmt.Sprintf("program %d is attached to %s: a roced holds the interface, or another program does", x.ProgId, name),
		fmt.Sprintf("bpftool prog show id %d; an interface has one at a time", x.ProgId))
}

func checkDriver(f *facts) []finding {
	subject := f.name + " driver"
	switch {
	case !f.features.known:
		return says(subject, note, "the kernel does not say what it offers (Linux 6.3 does)", "roced perf shows the modes that were got")
	case !f.features.has(xdpBasic | xdpRedirect):
		return says(subject, note, "no native XDP: generic is used, which is slower", "")
	case !f.features.has(xskZeroCopy):
		return says(subject, note, "native XDP; AF_XDP without zero-copy, so the kernel copies each frame",
			"nothing on this interface; drivers that have zero-copy are those of most cards from 10 Gb/s, and igb and virtio_net from Linux 6.14")
	case rdmaMTU(f.link.Attrs().MTU) == 4096 && !f.features.has(rxSG):
		return says(subject, warning, "native XDP takes no frames of several pages, as RDMA MTU 4096 needs", "--xdp generic, or a smaller MTU")
	case rdmaMTU(f.link.Attrs().MTU) == 4096 && f.features.segments < 2:
		return says(subject, note, "native XDP; at RDMA MTU 4096 a packet takes two chunks of memory, for which the driver has no zero-copy, so the kernel copies each frame",
			fmt.Sprintf("for zero-copy: ip link set dev %s mtu 2200, which is RDMA MTU 2048", f.base.Attrs().Name))
	}
	return ok(subject, "native XDP, AF_XDP with zero-copy")
}

// mostQueues is how many receive queues a device covers, and frames is a queue's memory in bytes.
const (
	mostQueues = 1024
	frames     = 8 << 20
)

func checkQueues(f *facts) []finding {
	subject := f.name + " queues"
	name := f.base.Attrs().Name
	switch {
	case f.queues > mostQueues:
		return says(subject, problem, fmt.Sprintf("%d receive queues, and roced covers %d", f.queues, mostQueues), fmt.Sprintf("ethtool -L %s combined %[2]d, or rx %[2]d", name, mostQueues))
	case f.queues > 1:
		return says(subject, note, fmt.Sprintf("%d receive queues, of which each has a socket with up to %d MiB; bursts do not leave in trains", f.queues, frames>>20),
			fmt.Sprintf("fewer are enough for RoCE, except for several workers: ethtool -L %s combined 1, or rx 1 tx 1", name))
	case f.queues == 1:
		return ok(subject, "one")
	}
	return nil
}

// The offload by which a driver takes VLAN tags out of frames, so that XDP does not see them.
const vlanOffload = "rx-vlan-hw-parse"

func checkVLAN(f *facts) []finding {
	if !f.offloads[vlanOffload] || len(f.vlans) == 0 {
		return nil
	}
	name := f.base.Attrs().Name
	do := "ethtool -K " + name + " rxvlan off"
	if f.base != f.link {
		return says(f.name+" VLAN", problem, name+" takes the tags out of received frames, so XDP does not see which are this VLAN's", do)
	}
	return says(f.name+" VLAN", warning, "takes the tags out of received frames, so packets of "+strings.Join(f.vlans, ", ")+" are taken for its own", do)
}
