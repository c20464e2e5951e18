// SPDX-License-Identifier: Apache-2.0

// Package memnet implements an in-memory network of hosts, for programs and tests that use verbs without a real network
// and without privileges: any number of hosts, each with a card (hca.New).
//
//	net := memnet.New(1)                        // the seed of random impairments
//	host, err := net.AddHost("a", address)      // its link, its addresses, its MTU
//	card, err := hca.New(host)
//
//	hca.Card ── calls ─► Host ── find ──► Network ── hosts, names, addresses, MACs
//	    └── engine ──► link.Port ── frames ──► link.Network: delivers, loses, duplicates, corrupts, delays
//
// Package datapath/link moves the frames; this package has the hosts and the impairments. The RDMA MTU is 4096. Each
// name and each address belongs to one host. There are no routers, and a frame for a group reaches all hosts. Without
// impairments and captures, connections combine several packets into one of up to 32 KiB (datapath/conn).
//
// # Fake time
//
// A network and its cards work in a bubble of [testing/synctest] if all of them are created and closed there. Delays,
// timeouts and retransmissions then take only fake time, which is the same in each run: a test of a connection that
// fails after its last timeout takes milliseconds. verbs/rc/synctest_test.go is an example.
//
// Fake time advances only while all goroutines of the bubble wait. A loop around Poll does not count as waiting, nor
// does poll(2) or a read of a descriptor from SyscallConn. CQ.Wait, CompChannel.Get, EventChannel.Get and all waits in
// packages verbs/ud and verbs/rc do. Cards of other kinds (hca.Open, the service) work in real time only.
package memnet
