// SPDX-License-Identifier: Apache-2.0

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

// xdpObstacles returns the reasons why a device cannot use XDP here; empty if it can.
func (f *facts) xdpObstacles() (reasons []string) {
	if len(f.missing) > 0 {
		reasons = append(reasons, "missing "+f.missingNames())
	} else if f.xdpSocket != nil {
		reasons = append(reasons, "AF_XDP sockets: "+f.xdpSocket.Error())
	}
	if f.program != nil {
		reasons = append(reasons, "the kernel rejects XDP programs from this process")
	}
	if f.locked < minLocked {
		reasons = append(reasons, "not enough locked memory")
	}
	if f.link != nil && f.link.Attrs().EncapType != "ether" {
		reasons = append(reasons, f.name+" is not Ethernet")
	}
	if f.queues > maxQueues {
		reasons = append(reasons, fmt.Sprintf("%s has more than %d receive queues", f.name, maxQueues))
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

// overUDP reports whether a device would use UDP sockets.
func (f *facts) overUDP() bool {
	return f.network == hca.NetworkUDP || f.network == hca.NetworkAuto && len(f.xdpObstacles()) > 0
}

// withoutXDP returns the severity of missing XDP support: a warning if UDP sockets can be used instead.
func (f *facts) withoutXDP() severity {
	if f.network == hca.NetworkXDP {
		return problem
	}
	return warning
}

// udpLimits lists the limits of a device over UDP sockets.
const udpLimits = "higher latency of single messages, no source MACs and VLANs, and only 15 of the 32 ICRC bits are checked for IPv4 packets"

// checkNetwork reports which network a device would use.
func checkNetwork(f *facts) []finding {
	why := strings.Join(f.xdpObstacles(), "; ")
	switch {
	case f.olderThan(6, 1):
		return nil // checkKernel reports that no network is available
	case f.isLoopback():
		return nil // checkKind reports that no network is available
	case f.network == hca.NetworkUDP:
		return ok("network", "UDP sockets, as requested: no privileges needed; "+udpLimits)
	case why == "" && f.network == hca.NetworkXDP:
		return ok("network", "XDP, as requested: all requirements are met")
	case why == "":
		return ok("network", "by default a device uses XDP: all requirements are met")
	case f.network == hca.NetworkXDP:
		return nil // the checks of the requirements report the obstacles
	}
	return ok("network", "by default a device uses UDP sockets because XDP is not available ("+why+"); "+udpLimits)
}

// checkPort reports the owners of the RoCEv2 port. A device over UDP needs the port; a device over XDP
// receives its packets before the owner.
func checkPort(f *facts) (list []finding) {
	var seen []string // reported owners
	for _, h := range f.holders {
		if owner := h.String(); !slices.Contains(seen, owner) {
			seen = append(seen, owner)
			list = append(list, f.holderFinding(h))
		}
	}
	switch {
	case len(list) > 0:
		return list
	case f.softRoCE:
		return report(portSubject, note, "free, but Soft-RoCE (rdma_rxe) is loaded and binds it on all addresses with its first device", "use only one of them on a host")
	}
	return ok(portSubject, "free")
}

const portSubject = "UDP port 4791"

// holderFinding reports the effect of another owner of the port.
func (f *facts) holderFinding(h host.PortHolder) finding {
	const do = "stop it, or use its device if it is a roced process"
	isRoced := strings.HasPrefix(h.Program, "roced ")
	switch {
	case isRoced && f.link != nil && f.holder() != "":
		return finding{portSubject, good, fmt.Sprintf("in use by %v, the service, for device %s on this interface", h, f.holder()), ""}
	case h.Kernel:
		return finding{portSubject, f.ifOverUDP(problem, warning), fmt.Sprintf("in use on all addresses by %v: only one of them can receive RoCEv2 packets", h),
			"rdma link lists the devices of Soft-RoCE; remove them with rdma link delete NAME, then rmmod rdma_rxe"}
	case isRoced && f.blocks(h.Address):
		return finding{portSubject, note, fmt.Sprintf("in use on %v by %v, which owns the interface", h.Address, h), do}
	case f.blocks(h.Address):
		return finding{portSubject, problem, fmt.Sprintf("in use on %v by %v, so no device can be opened", h.Address, h), do}
	}
	return finding{portSubject, note, fmt.Sprintf("in use on %v by %v: no device can be opened on the interface with that address", h.Address, h), do}
}

func (f *facts) ifOverUDP(then, otherwise severity) severity {
	if f.overUDP() {
		return then
	}
	return otherwise
}

// blocks reports whether a socket bound to an address prevents a device on the interface.
func (f *facts) blocks(bound netip.Addr) bool {
	return f.link != nil && (bound.IsUnspecified() && f.overUDP() || slices.Contains(f.addresses, bound))
}

// checkLoopback warns if lo is down: a UDP card uses lo to determine how the kernel numbers packets.
func checkLoopback(f *facts) []finding {
	if f.loopbackUp || !f.overUDP() {
		return nil
	}
	return report("lo", warning, "is down, so the packet numbering of the kernel cannot be tested and packet trains are not used", "ip link set dev lo up")
}

// readPort determines the owners of the RoCEv2 port and the state of lo.
func (f *facts) readPort() {
	f.holders, f.softRoCE = host.PortHolders(rocePortNumber), host.HasSoftRoCE()
	lo, err := netlink.LinkByName("lo")
	f.loopbackUp = err != nil || lo.Attrs().RawFlags&unix.IFF_UP != 0
}

// rocePortNumber is the UDP port of RoCEv2.
const rocePortNumber = 4791
