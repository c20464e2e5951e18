// Package roced is software RoCEv2 for any Linux network interface: XDP steers RoCEv2 packets
// into AF_XDP rings, an engine in Go plays the RDMA card, and programs use a verbs API.
//
// This package is empty. Programs start with three others:
//
//   - [github.com/roced/roced/verbs] is the API, libibverbs' nouns with Go's habits
//     (go doc github.com/roced/roced/verbs);
//   - [github.com/roced/roced/verbs/hca] opens the card of an interface (hca.Open("eth0")), or
//     those of hosts on a network in memory for tests, which need no privilege (hca.New);
//   - [github.com/roced/roced/verbs/ud] is the short way to datagrams and groups: endpoints that
//     own their buffers, and a net.PacketConn.
//
// The rest is what these are made of: datapath (the engine), datapath/wire (packets),
// datapath/xsk (AF_XDP), bpf (the steering program), mcast (groups and memberships). The
// command is cmd/roced; README.md shows how to begin.
package roced
