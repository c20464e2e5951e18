// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Kind is the kind of a membership message.
type Kind string

// The kinds. A querier sends queries; hosts send reports and leaves.
const (
	Query  Kind = "query"
	Report Kind = "report" // the host is a member
	Leave  Kind = "leave"  // the host is no longer a member
)

// MembershipMessage is an IGMP or MLD message about one group.
type MembershipMessage struct {
	Kind     Kind
	Protocol string     // with its version, such as "IGMPv3"; "IGMP" or "MLD" for a query
	Group    netip.Addr // unspecified in a query for all groups
}

// The types of messages (RFC 2236, 3376, 2710, 3810; for IGMPv1 RFC 1112).
const (
	igmpQuery    = 0x11
	igmpV1Report = 0x12
	igmpV2Report = 0x16
	igmpLeave    = 0x17
	igmpV3Report = 0x22
	mldQuery     = 130
	mldV1Report  = 131
	mldDone      = 132
	mldV2Report  = 143
)

// The types of records in IGMPv3 and MLDv2 reports (RFC 3376, 4.2.12). Without sources, a change to
// "include" is a leave, and "exclude" is a membership.
const (
	modeIsExclude   = 2
	changeToInclude = 3
	changeToExclude = 4
)

// MembershipMessages returns the IGMP or MLD messages in an Ethernet frame; none if the frame has
// none or is truncated. It does not verify checksums.
func MembershipMessages(frame []byte) []MembershipMessage {
	const ethernet = 14
	if len(frame) < ethernet {
		return nil
	}
	packet := frame[ethernet:]
	switch binary.BigEndian.Uint16(frame[ethernet-2:]) {
	case unix.ETH_P_IP:
		return igmpMessages(packet)
	case unix.ETH_P_IPV6:
		return mldMessages(packet)
	}
	return nil
}

// igmpMessages skips the IPv4 header and its "router alert" option. A fragment that is not the first has no IGMP header.
func igmpMessages(packet []byte) []MembershipMessage {
	const fragment, protocol = 6, 9
	if len(packet) < 20 || packet[protocol] != unix.IPPROTO_IGMP || binary.BigEndian.Uint16(packet[fragment:])&0x1fff != 0 {
		return nil
	}
	header := int(packet[0]&0xf) * 4
	if len(packet) < header+8 {
		return nil
	}
	igmp := packet[header:]
	group := netip.AddrFrom4([4]byte(igmp[4:8]))
	switch igmp[0] {
	case igmpQuery:
		return []MembershipMessage{{Query, "IGMP", group}}
	case igmpV1Report:
		return []MembershipMessage{{Report, "IGMPv1", group}}
	case igmpV2Report:
		return []MembershipMessage{{Report, "IGMPv2", group}}
	case igmpLeave:
		return []MembershipMessage{{Leave, "IGMPv2", group}}
	case igmpV3Report:
		return reportRecords(igmp, 4, "IGMPv3")
	}
	return nil
}

// mldMessages skips the IPv6 header and the hop-by-hop options, which have "router alert".
func mldMessages(packet []byte) []MembershipMessage {
	const fixed, nextHeader = 40, 6
	if len(packet) < fixed+8 || packet[nextHeader] != unix.IPPROTO_HOPOPTS || packet[fixed] != unix.IPPROTO_ICMPV6 {
		return nil
	}
	header := fixed + 8 + int(packet[fixed+1])*8
	if len(packet) < header+8 {
		return nil
	}
	mld := packet[header:]
	if mld[0] == mldV2Report {
		return reportRecords(mld, 16, "MLDv2")
	}
	if len(mld) < 24 {
		return nil
	}
	group := netip.AddrFrom16([16]byte(mld[8:]))
	switch mld[0] {
	case mldQuery:
		return []MembershipMessage{{Query, "MLD", group}}
	case mldV1Report:
		return []MembershipMessage{{Report, "MLDv1", group}}
	case mldDone:
		return []MembershipMessage{{Leave, "MLDv1", group}}
	}
	return nil
}

// reportRecords reads the records of a report. IGMPv3 and MLDv2 have the same layout: type 1,
// length of auxiliary data in words 1, number of sources 2, group, sources, auxiliary data.
func reportRecords(report []byte, addressLen int, protocol string) (found []MembershipMessage) {
	rest := report[8:]
	for range binary.BigEndian.Uint16(report[6:]) {
		if len(rest) < 4+addressLen {
			return found
		}
		kind, sources := rest[0], int(binary.BigEndian.Uint16(rest[2:]))
		group, _ := netip.AddrFromSlice(rest[4 : 4+addressLen])
		switch {
		case kind == modeIsExclude || kind == changeToExclude:
			found = append(found, MembershipMessage{Report, protocol, group})
		case kind == changeToInclude && sources == 0:
			found = append(found, MembershipMessage{Leave, protocol, group})
		}
		rest = rest[min(len(rest), 4+addressLen*(1+sources)+4*int(rest[1])):]
	}
	return found
}
