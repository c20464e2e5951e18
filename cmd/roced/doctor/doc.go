// Package doctor is roced doctor: it looks at a host as a knowledgeable colleague would, and says what to
// do. It changes nothing, and opens no card.
//
//	doctor.go    the command line
//	report.go    findings as a table or JSON
//	finding.go   how bad something is, what was seen, what to do
//	facts.go     what is seen: everything that checks go by
//	look.go      where facts come from: netlink, ethtool, /proc, what iptables-save and nft print
//	xdp.go       what the driver offers, by the kernel's netdev family
//	querier.go   whether somebody asks who is in which group
//	checks.go    facts to findings about the host
//	way.go       facts to findings about the way to the network: XDP or UDP sockets
//	service.go   facts to findings about the service
//	interface.go facts to findings about the interface
//	network.go   facts to findings about switches and firewalls
//
// Looking and judging are separate, so that judging can be tested without real faults, and looking with them.
package doctor
