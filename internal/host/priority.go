package host

import "github.com/vishvananda/netlink"

// TOSPriority is the priority of packets with a type of service, the kernel's rt_tos2priority: of the four bits that
// once asked for delay, throughput, reliability and cost.
func TOSPriority(tos uint8) uint8 { return tosPriorities[tos&0x1E>>1] }

var tosPriorities = [16]uint8{
	0, 1, 0, 0, // best effort, and filler
	2, 2, 2, 2, // bulk
	6, 6, 6, 6, // interactive
	4, 4, 4, 4, // interactive bulk
}

// Egress are the VLAN priorities that an interface gives to packets, by their priorities (ip link, egress-qos-map). Of
// one that is no VLAN, and of one without a map, they are 0.
type Egress [8]uint8

// EgressOf are those of an interface.
func EgressOf(link netlink.Link) (egress Egress) {
	vlan, is := link.(*netlink.Vlan)
	if !is {
		return egress
	}
	for priority, class := range vlan.EgressQosMap {
		if priority < uint32(len(egress)) {
			egress[priority] = uint8(class & 7)
		}
	}
	return egress
}
