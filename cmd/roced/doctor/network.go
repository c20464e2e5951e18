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
	seen := fmt.Sprintf("%d IPv4 groups are joined by addresses, of %d that net.ipv4.igmp_max_memberships allows", f.groupsByAddress, f.groupLimit)
	if f.groupsByAddress*5 >= f.groupLimit*4 {
		return says("groups", warning, seen+"; further ones are joined by sockets", fmt.Sprintf("sysctl -w net.ipv4.igmp_max_memberships=%d", max(4*f.groupLimit, 100)))
	}
	return ok("groups", seen)
}

var (
	// rocePort is a rule about RoCEv2's port, in the words of nft or iptables.
	rocePort = regexp.MustCompile(`\b(dport|sport)s?\b[^\n]*\b4791\b`)
	// outputDrop is a default of dropping what the host sends.
	outputDrop = regexp.MustCompile(`hook output[^\n]*policy drop|(?m)^:OUTPUT DROP`)
	// inputDrop is a default of dropping what the host receives.
	inputDrop = regexp.MustCompile(`hook input[^\n]*policy drop|(?m)^:INPUT DROP`)
	igmpRule  = regexp.MustCompile(`\bigmp\b`)
)

func checkFirewall(f *facts) (list []finding) {
	if rocePort.MatchString(f.rules) && f.overUDP() {
		list = append(list, says("firewall", note, "there are rules for port 4791, which apply to a device over UDP sockets: they may drop its packets", "nft list ruleset, iptables-save")...)
	} else if rocePort.MatchString(f.rules) {
		list = append(list, says("firewall", note, "there are rules for port 4791; XDP runs before them, so they do not apply to a device's packets", "filter RoCEv2 on the switch, or by who may use the service's socket")...)
	}
	knowsIGMP := igmpRule.MatchString(f.rules)
	if outputDrop.MatchString(f.rules) && !knowsIGMP {
		list = append(list, says("firewall", warning, "what the host sends is dropped by default, and no rule names IGMP: switches do not hear of memberships", "nft add rule inet filter output ip protocol igmp accept (and icmpv6), or iptables -I OUTPUT -p igmp -j ACCEPT")...)
	}
	if inputDrop.MatchString(f.rules) && !knowsIGMP {
		list = append(list, says("firewall", warning, "what the host receives is dropped by default, and no rule names IGMP: the querier's questions stay without answers", "nft add rule inet filter input ip protocol igmp accept (and icmpv6), or iptables -I INPUT -p igmp -j ACCEPT")...)
	}
	if len(list) == 0 {
		return ok("firewall", "no rules that get in the way")
	}
	return list
}

func checkSnooping(f *facts) (list []finding) {
	if b := f.bridge; b != nil && b.snooping && !b.querier {
		list = append(list, says("snooping", warning, "bridge "+b.name+" snoops and asks nobody: unless another querier is on the network, it forgets groups after 260 s",
			"ip link set dev "+b.name+" type bridge mcast_querier 1; or mcast_snooping 0")...)
	}
	if f.listened == 0 {
		return append(list, says("querier", note, "not looked for: switches that snoop forget groups without one", "roced doctor -d "+f.name+" --listen 130s waits for its questions")...)
	}
	var silent []string
	for _, protocol := range []string{igmp, mld} {
		if !f.queries[protocol] {
			silent = append(silent, protocol)
		}
	}
	if len(silent) == 0 {
		return append(list, ok("querier", "asks by IGMP and MLD")...)
	}
	return append(list, says("querier", warning, fmt.Sprintf("no %s query in %v (they come every 125 s by default): switches that snoop forget groups", strings.Join(silent, " and no "), f.listened),
		"have a switch or router ask (IGMP and MLD querier), or turn snooping off")...)
}
