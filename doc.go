// SPDX-License-Identifier: Apache-2.0

// Package roced is software RoCEv2 for any Linux network interface: XDP steers RoCEv2 packets
// into AF_XDP rings, an engine in Go does what an RDMA card does, and programs use a verbs API.
//
// This package is empty. Programs start with one of these:
//
//   - [github.com/roced/roced/verbs] is the API: libibverbs' names in Go's spelling
//     (go doc github.com/roced/roced/verbs);
//   - [github.com/roced/roced/verbs/hca] opens the card of an interface (hca.Open("eth0")), or
//     those of hosts on an in-memory network for tests, without privileges (hca.New);
//   - [github.com/roced/roced/verbs/ud] is the short way to datagrams and groups: endpoints that
//     own their buffers, and a net.PacketConn;
//   - [github.com/roced/roced/verbs/rc] is its twin for connections, by address and port, with a
//     net.Conn and a net.Listener.
//
// The other packages are what these are made of: datapath (the engine), datapath/wire (packet
// formats), datapath/xsk (AF_XDP), bpf (the steering program), mcast (groups and memberships).
// The command is cmd/roced; README.md shows how to begin.
package roced
