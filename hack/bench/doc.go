// SPDX-License-Identifier: Apache-2.0

// Command bench measures roced beside the kernel's UDP and raw AF_XDP, in one run,
// on one veth pair between two namespaces, and prints the ratios. "make bench" runs it.
//
//	main.go     which cases, how often, in what order
//	  │ one process a side and case: "bench child", a job as JSON in its arguments
//	  ▼
//	roles.go ── udp.go      (a) sendmmsg and recvmmsg, 64 at a time; udpgso.go: trains
//	         ├─ raw.go      (b) AF_XDP at both ends, no protocol
//	         ├─ roced.go    (c) a program that runs the card itself, (d) worker and waiting program
//	         ├─ ud.go       the same two through package ud
//	         └─ generator.go    frames made by XDP itself, for receiving alone (receive.go);
//	                            speed.go, distance.go: what the host did with the cores
//	mixed*.go   many queue pairs, lengths and destinations: order, and every loss counted
//	fanout.go, members.go   one group, many receivers; joins.go: a thousand joins
//	requests*.go    server and clients that sleep, and their twins over package net
//	rpc.go          the same over connections: package rc, and TCP
//	blocking.go     a receiver that sleeps for each of 10,000 messages a second
//	engine.go   the engine alone, over an in-memory network, in this process
//	idle.go     what a device costs that does nothing
//	daemon*.go  the same through a daemon on each side, programs as its clients
//
// Package harness has what all of them share: children, turns of variants, medians, the table, bench.json.
//
// These machines are noisy: cases that are compared run in turns, several rounds of
// them, and each figure is the median of its rounds. A ratio is judged by a reader, not
// by a test: nothing here passes or fails on a time.
//
// Left out, except for mixed traffic: loss. A sender that is faster than its receiver loses messages
// in every variant; what counts is what the receiver got.
package main
