package main

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// membershipMessage is what a host told the network about a group.
type membershipMessage struct {
	group    netip.Addr
	leave    bool
	protocol string
}

// The types of messages (RFC 2236, 3376, 2710, 3810; IGMPv1's is that of RFC 1112).
const (
	igmpV1Report = 0x12
	igmpV2Report = 0x16
	igmpLeave    = 0x17
	igmpV3Report = 0x22
	mldV1Report  = 131
	mldDone      = 132
	mldV2Report  = 143
)

// The types of records in a report that has several (RFC 3376, 4.2.12). Without
// sources, a change to "include" is a leave, and "exclude" is membership.
const (
	modeIsExclude   = 2
	changeToInclude = 3
	changeToExclude = 4
)

// membershipMessages finds what an Ethernet frame reports, nothing if it is no such
// report, or is cut short. Checksums are not looked at.
func membershipMessages(frame []byte) []membershipMessage {
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

// igmpMessages passes over the IPv4 header, whose options are "router alert".
func igmpMessages(packet []byte) []membershipMessage {
	const protocol = 9
	if len(packet) < 20 || packet[protocol] != unix.IPPROTO_IGMP {
		return nil
	}
	header := int(packet[0]&0xf) * 4
	if len(packet) < header+8 {
		return nil
	}
	igmp := packet[header:]
	group := netip.AddrFrom4([4]byte(igmp[4:8]))
	switch igmp[0] {
	case igmpV1Report:
		return []membershipMessage{{group, false, "IGMPv1"}}
	case igmpV2Report:
		return []membershipMessage{{group, false, "IGMPv2"}}
	case igmpLeave:
		return []membershipMessage{{group, true, "IGMPv2"}}
	case igmpV3Report:
		return reportRecords(igmp, 4, "IGMPv3")
	}
	return nil
}

// mldMessages passes over the IPv6 header and the hop-by-hop options, which are
// "router alert".
func mldMessages(packet []byte) []membershipMessage {
	const fixed, nextHeader = 40, 6
	if len(packet) < fixed+8 || packet[nextHeader] != unix.IPPROTO_HOPOPTS || packet[fixed] != unix.IPPROTO_ICMPV6 {
		return nil
	}
	header := fixed + 8 + int(packet[fixed+1])*8
	if len(packet) < header+8 {
		return nil
	}
	mld := packet[header:]
	switch {
	case mld[0] == mldV2Report:
		return reportRecords(mld, 16, "MLDv2")
	case (mld[0] == mldV1Report || mld[0] == mldDone) && len(mld) >= 24:
		return []membershipMessage{{netip.AddrFrom16([16]byte(mld[8:])), mld[0] == mldDone, "MLDv1"}}
	}
	return nil
}

// reportRecords reads a report with several records, which IGMPv3 and MLDv2 lay out
// alike: type 1, auxiliary data in words 1, sources 2, group, sources, auxiliary data.
func reportRecords(report []byte, addressLen int, protocol string) (found []membershipMessage) {
	rest := report[8:]
	for range binary.BigEndian.Uint16(report[6:]) {
		if len(rest) < 4+addressLen {
			return found
		}
		kind, sources := rest[0], int(binary.BigEndian.Uint16(rest[2:]))
		group, _ := netip.AddrFromSlice(rest[4 : 4+addressLen])
		switch {
		case kind == modeIsExclude || kind == changeToExclude:
			found = append(found, membershipMessage{group, false, protocol})
		case kind == changeToInclude && sources == 0:
			found = append(found, membershipMessage{group, true, protocol})
		}
		rest = rest[min(len(rest), 4+addressLen*(1+sources)+4*int(rest[1])):]
	}
	return found
}
