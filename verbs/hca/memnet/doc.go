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
package memnet
