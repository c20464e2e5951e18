// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"regexp"
	"strings"
)

func checkGroups(f *facts) []finding {
	if f.groupLimit == 0 {
		return nil
	}
	seen := fmt.Sprintf("%d IPv4 groups are joined by addresses (limit %d: net.ipv4.igmp_max_memberships)", f.groupsByAddress, f.groupLimit)
	if f.groupsByAddress*5 >= f.groupLimit*4 {
		return report("groups", warning, seen+"; further groups are joined by sockets", fmt.Sprintf("sysctl -w net.ipv4.igmp_max_memberships=%d", max(4*f.groupLimit, 100)))
	}
	return ok("groups", seen)
}

var (
	// rocePort matches a rule for the RoCEv2 port, as printed by nft or iptables.
	rocePort = regexp.MustCompile(`\b(dport|sport)s?\b[^\n]*\b4791\b`)
	// outputDrop matches a default policy that drops sent packets.
	outputDrop = regexp.MustCompile(`hook output[^\n]*policy drop|(?m)^:OUTPUT DROP`)
	// inputDrop matches a default policy that drops received packets.
	inputDrop = regexp.MustCompile(`hook input[^\n]*policy drop|(?m)^:INPUT DROP`)
	igmpRule  = regexp.MustCompile(`\bigmp\b`)
)

func checkFirewall(f *facts) (list []finding) {
	if rocePort.MatchString(f.rules) && f.overUDP() {
		list = append(list, report("firewall", note, "rules for port 4791 apply to devices over UDP sockets: they may drop packets", "nft list ruleset, iptables-save")...)
	} else if rocePort.MatchString(f.rules) {
		list = append(list, report("firewall", note, "rules for port 4791 do not apply to XDP devices: XDP runs before them", "filter RoCEv2 on the switch, or restrict access to the service's socket")...)
	}
	acceptsIGMP := igmpRule.MatchString(f.rules)
	if outputDrop.MatchString(f.rules) && !acceptsIGMP {
		list = append(list, report("firewall", warning, "sent packets are dropped by default and no rule accepts IGMP: switches do not see memberships", "nft add rule inet filter output ip protocol igmp accept (and icmpv6), or iptables -I OUTPUT -p igmp -j ACCEPT")...)
	}
	if inputDrop.MatchString(f.rules) && !acceptsIGMP {
		list = append(list, report("firewall", warning, "received packets are dropped by default and no rule accepts IGMP: queries are not answered", "nft add rule inet filter input ip protocol igmp accept (and icmpv6), or iptables -I INPUT -p igmp -j ACCEPT")...)
	}
	if len(list) == 0 {
		return ok("firewall", "no rules that affect RoCEv2")
	}
	return list
}

func checkSnooping(f *facts) (list []finding) {
	if b := f.bridge; b != nil && b.snooping && !b.querier {
		list = append(list, report("snooping", warning, "bridge "+b.name+" snoops without a querier: unless the network has another querier, the bridge forgets groups after 260 s",
			"ip link set dev "+b.name+" type bridge mcast_querier 1, or mcast_snooping 0")...)
	}
	if f.listened == 0 {
		return append(list, report("querier", note, "not checked: snooping switches forget groups without a querier", "roced doctor -d "+f.name+" --listen 130s waits for queries")...)
	}
	var silent []string
	for _, protocol := range []string{igmp, mld} {
		if !f.queries[protocol] {
			silent = append(silent, protocol)
		}
	}
	if len(silent) == 0 {
		return append(list, ok("querier", "sends IGMP and MLD queries")...)
	}
	return append(list, report("querier", warning, fmt.Sprintf("no %s query in %v (sent every 125 s by default): snooping switches forget groups", strings.Join(silent, " and no "), f.listened),
		"enable an IGMP and MLD querier on a switch or router, or disable snooping")...)
}
