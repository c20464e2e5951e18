package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs/hca"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// withoutXDP says why a device cannot use XDP here; empty if it can.
func (f *facts) withoutXDP() (reasons []string) {
	if len(f.missing) > 0 {
		reasons = append(reasons, "missing "+f.missingNames())
	} else if f.xdpSocket != nil {
		reasons = append(reasons, "AF_XDP sockets: "+f.xdpSocket.Error())
	}
	if f.program != nil {
		reasons = append(reasons, "the kernel takes no XDP program from this process")
	}
	if f.locked < leastLocked {
		reasons = append(reasons, "too little locked memory")
	}
	if f.link != nil && f.link.Attrs().EncapType != "ether" {
		reasons = append(reasons, f.name+" is not Ethernet")
	}
	if f.queues > mostQueues {
		reasons = append(reasons, fmt.Sprintf("%s has more than %d receive queues", f.name, mostQueues))
	}
	return reasons
}

func (f *facts) missingNames() string {
	var names []string
	for _, c := range f.missing {
		names = append(names, c.String())
	}
	return strings.Join(names, ", ")
}

// overUDP says that a device would use UDP sockets.
func (f *facts) overUDP() bool {
	return f.network == hca.NetworkUDP || f.network == hca.NetworkAuto && len(f.withoutXDP()) > 0
}

// unlessUDP is how bad it is that XDP cannot be had: there are UDP sockets, unless XDP is asked for.
func (f *facts) unlessUDP() severity {
	if f.network == hca.NetworkXDP {
		return problem
	}
	return warning
}

// lost is what a device over UDP sockets has not.
const lost = "single messages take longer, source MACs and VLANs are not seen, and of the ICRC's 32 bits 15 check IPv4's packets"

// checkNetwork says which way to the network a device would take.
func checkNetwork(f *facts) []finding {
	why := strings.Join(f.withoutXDP(), "; ")
	switch {
	case f.olderThan(6, 1):
		return nil // checkKernel reports that no network is available
	case f.isLoopback():
		return nil // checkKind reports that no network is available
	case f.network == hca.NetworkUDP:
		return ok("network", "UDP sockets, as asked for: no privilege is needed; "+lost)
	case why == "" && f.network == hca.NetworkXDP:
		return ok("network", "XDP, as asked for: all that it needs is there")
	case why == "":
		return ok("network", "by itself a device uses XDP: all that it needs is there")
	case f.network == hca.NetworkXDP:
		return nil // what is missing says so itself
	}
	return ok("network", "by itself a device uses UDP sockets, since XDP cannot be had ("+why+"): "+lost)
}

// checkPort looks who has RoCEv2's port. Over UDP a device needs it; over XDP it takes its packets away.
func checkPort(f *facts) (list []finding) {
	var seen []string // who was told of
	for _, h := range f.holders {
		if who := h.String(); !slices.Contains(seen, who) {
			seen = append(seen, who)
			list = append(list, f.tellHolder(h))
		}
	}
	switch {
	case len(list) > 0:
		return list
	case f.softRoCE:
		return says(portSubject, note, "free; but Soft-RoCE (rdma_rxe) is loaded, which takes it of all addresses with its first device", "use one of the two on a host")
	}
	return ok(portSubject, "free")
}

const portSubject = "UDP port 4791"

// tellHolder says what it means that somebody has the port.
func (f *facts) tellHolder(h host.PortHolder) finding {
	const do = "end it, or use its device, if it is a roced's"
	isRoced := strings.HasPrefix(h.Program, "roced ")
	switch {
	case isRoced && f.link != nil && f.holder() != "":
		return finding{portSubject, good, fmt.Sprintf("%v has it, the service, whose device %s has the interface", h, f.holder()), ""}
	case h.Kernel:
		return finding{portSubject, f.ifOverUDP(problem, warning), fmt.Sprintf("%v has it, of all addresses: only one of the two can receive RoCEv2", h),
			"rdma link shows Soft-RoCE's devices, rdma link delete NAME removes one; rmmod rdma_rxe"}
	case isRoced && f.isOwn(h.Address):
		return finding{portSubject, note, fmt.Sprintf("%v has it, of %v: it holds the interface", h, h.Address), do}
	case f.isOwn(h.Address):
		return finding{portSubject, problem, fmt.Sprintf("%v has it, of %v, so no device can be opened", h, h.Address), do}
	}
	return finding{portSubject, note, fmt.Sprintf("%v has it, of %v: a device on the interface with that address cannot be opened", h, h.Address), do}
}

func (f *facts) ifOverUDP(then, otherwise severity) severity {
	if f.overUDP() {
		return then
	}
	return otherwise
}

// isOwn says whether a socket that has an address hinders a device on the interface.
func (f *facts) isOwn(bound netip.Addr) bool {
	return f.link != nil && (bound.IsUnspecified() && f.overUDP() || slices.Contains(f.addresses, bound))
}

// checkLoopback: over UDP a card tries on lo how the kernel numbers packets.
func checkLoopback(f *facts) []finding {
	if f.loopbackUp || !f.overUDP() {
		return nil
	}
	return says("lo", warning, "is down, so it cannot be tried how the kernel numbers packets, and they do not leave in trains", "ip link set dev lo up")
}

// lookAtPort looks at what UDP sockets need.
func (f *facts) lookAtPort() {
	f.holders, f.softRoCE = host.PortHolders(rocePortNumber), host.HasSoftRoCE()
	lo, err := netlink.LinkByName("lo")
	f.loopbackUp = err != nil || lo.Attrs().RawFlags&unix.IFF_UP != 0
}

// rocePortNumber is the UDP port of RoCEv2.
const rocePortNumber = 4791
