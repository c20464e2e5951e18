// Package memnet is hosts on a network in memory, for programs and tests that want verbs without a network and
// without privileges: any number of hosts, each with a card (hca.New).
//
//	net := memnet.New(1)                        // the seed of what happens at random
//	host, err := net.AddHost("a", address)      // its link, its addresses, its MTU
//	card, err := hca.New(host)
//
//	hca.Card ── asks ──► Host ── find ──► Network ── hosts, names, addresses, MACs
//	   └── engine ──► link.Port ── frames ──► link.Network: delivers, loses, repeats, damages, delays
//
// Frames are datapath/link's; hosts, and what happens to frames, are here. The RDMA MTU is 4096. Each name and each
// address belongs to one host. There are no routers, and a frame for a group reaches all hosts. Where nothing is impaired
// or captured, connections send packets of up to 32 KiB, each for several (datapath/conn).
//
// # Fake time
//
// A network and its cards work in a bubble of [testing/synctest] if all of them are made and closed there. Delays, timeouts
// and retransmissions then take fake time only, and tests see the same times in each run: a test of a connection that
// ends after its last timeout takes milliseconds. verbs/rc/synctest_test.go shows it.
//
// Fake time passes only while all goroutines of the bubble wait. These do not count as waiting: a loop around Poll, and
// poll(2) or a read of a descriptor from SyscallConn. CQ.Wait, CompChannel.Get, EventChannel.Get and everything in
// packages verbs/ud and verbs/rc do. Cards of other kinds (hca.Open, the service) work in real time only.
package memnet
