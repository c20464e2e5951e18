// SPDX-License-Identifier: Apache-2.0

// Command bench compares roced with the kernel's UDP and raw AF_XDP, in one run, on one veth pair between two
// namespaces, and prints the ratios. "make bench" runs it.
//
//	main.go     cases, their order and number of rounds
//	  │ one process per side and case: "bench child" with a job as a JSON argument
//	  ▼
//	roles.go ── udp.go      (a) sendmmsg and recvmmsg, 64 at a time; udpgso.go: trains
//	         ├─ raw.go      (b) AF_XDP at both ends, no protocol
//	         ├─ roced.go    (c) a program that drives the card itself, (d) a worker and a waiting program
//	         ├─ ud.go       the same two through package ud
//	         └─ generator.go    frames sent by an XDP program, for receive-only measurements (receive.go);
//	                            speed.go, distance.go: speed and placement of the cores
//	mixed*.go   many queue pairs, lengths and destinations: order, and a counter for every loss
//	fanout.go, members.go   one group, many receivers; joins.go: 1000 joins
//	requests*.go    a server and clients that sleep, and the same over package net
//	rpc.go          the same over connections: package rc, and TCP
//	blocking.go     a receiver that sleeps before each of 10,000 messages per second
//	engine.go   the engine alone, over an in-memory network, in this process
//	idle.go     cost of an idle device
//	daemon*.go  the same with programs as clients of a daemon on each side
//
// Package harness contains the common parts: child processes, rounds of variants, medians, the table, bench.json.
//
// The machines are noisy: compared variants run alternately in several rounds, and each figure is the median of its
// rounds. Command bench only reports ratios: no measured time makes it fail.
//
// Out of scope, except for mixed traffic: loss. A sender that is faster than its receiver loses messages in every
// variant. The rate is that of the receiver.
package main
