// SPDX-License-Identifier: Apache-2.0

package host

import "github.com/vishvananda/netlink"

// TOSPriority returns the priority of packets with a type of service, from the kernel's rt_tos2priority. Its
// four bits originally requested delay, throughput, reliability and cost.
func TOSPriority(tos uint8) uint8 { return tosPriorities[tos&0x1E>>1] }

var tosPriorities = [16]uint8{
	0, 1, 0, 0, // best effort, and filler
	2, 2, 2, 2, // bulk
	6, 6, 6, 6, // interactive
	4, 4, 4, 4, // interactive bulk
}

// Egress maps packet priorities to VLAN priorities of an interface (ip link, egress-qos-map). They are 0 for
// an interface that is not a VLAN or has no map.
type Egress [8]uint8

// EgressOf returns the map of an interface.
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
