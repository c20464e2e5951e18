// SPDX-License-Identifier: Apache-2.0

// Package doctor implements roced doctor, which checks a host for causes of failures and suggests remedies.
// It changes nothing and opens no card.
//
//	doctor.go    the command line
//	report.go    findings as a table or JSON
//	finding.go   a finding: its severity, the observation and the remedy
//	facts.go     the facts that the checks evaluate
//	gather.go    sources of the facts: netlink, ethtool, /proc, iptables-save and nft
//	xdp.go       XDP features of the driver, from the netdev netlink family
//	querier.go   detection of IGMP and MLD queriers
//	checks.go    checks of the host
//	network.go   checks of the two networks, XDP and UDP sockets
//	service.go   checks of the service
//	interface.go checks of the interface
//	fabric.go    checks of switches and firewalls
//
// Gathering facts and evaluating them are separate, so that the checks can be tested without real faults.
package doctor
