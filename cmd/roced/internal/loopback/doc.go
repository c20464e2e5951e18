// SPDX-License-Identifier: Apache-2.0

// Package loopback implements the device of roced run --loopback and of roced exec: an in-memory network,
// which needs no privileges, no network and no kernel support.
//
//	process ── session ── host 10.88.0.1, fd88::1 ──┐
//	process ══ sessions ═ host 10.88.0.2, fd88::2 ──┼── memnet.Network
//	program ──┬ session ─ host "server" 10.1.2.3 ───┘
//	program ──┘
//
// A process that opens the device "loop" is a host with the lowest free address of each pool (pool.go), until
// it has ended and its sessions are closed (guest.go). All its sessions are on that host. Attributes and
// total counters of the device are available without a program. Hosts on the command line are separate
// devices with fixed addresses; programs that open one share it.
//
// The network can be impaired (impairment.go), and a schedule can change links and addresses of hosts
// (schedule.go).
package loopback
