// Package loopback is the device of roced run --loopback, and of roced exec: a network in memory, which needs no privilege, no
// network and no kernel's help.
//
//	process ── session ── host 10.88.0.1, fd88::1 ──┐
//	process ══ sessions ═ host 10.88.0.2, fd88::2 ──┼── memnet.Network
//	program ──┬ session ─ host "server" 10.1.2.3 ───┘
//	program ──┘
//
// A process that opens the device "loop" is a host by itself, with the lowest free address of each pool (pool.go),
// for as long as it lives or has sessions (guest.go). All its sessions are on that host. The service can say what
// that device is, and what all of its hosts have counted, without a program too. Hosts that the command line names
// are devices of their own: their addresses are known beforehand, and programs that open one share it.
//
// The network can be a bad one (impairment.go), and hosts' links and addresses can change as a file says (schedule.go).
package loopback
