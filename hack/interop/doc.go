// SPDX-License-Identifier: Apache-2.0

// Interop tests roced with an independent peer: the kernel's Soft-RoCE (rdma_rxe) in a virtual machine, with unmodified
// programs of rdma-core and perftest, and pyverbs.
//
//	host (a namespace)            switch (a namespace)            peer (a virtual machine)
//	┌────────────────┐    ┌─────────────────────────────┐    ┌──────────────────────┐
//	│ roced on eth0  ──────── port1    br0    port2 ─────TAP── eth0, rxe0           │
//	│ 10.98.0.1      │    │       snoops, queries       │    │ 10.98.0.2            │
//	│ fd98::1        │    │  every case is captured     │    │ fd98::2              │
//	└────────────────┘    └─────────────────────────────┘    └──────────────────────┘
//
// "make interop" runs it. It prints a line for each case, and fails if a case fails. The frames of each case are
// captured on both ports of the switch. tshark must report no errors in them.
//
// -tx sets roced's send mode. The default is automatic, which means without trains on this interface. "make interop"
// also runs all cases with trains. Cases with "trains" in their name always use them. Captured trains are segmented
// into packets before they are judged.
//
// With -workers 2 the host's interface has two queues, to which the peer's packets are distributed by their source port
// (lab.SpreadByPort), and roced's card has two workers. Commands are then clients of a service. A worker passes packets
// for a program of the other worker on.
//
// With -zerocopy MODEL the host is a virtual machine too, with the newest kernel of Debian and a network card of that
// model (virtio-net-pci, igb), which roced uses with zero-copy. Only cases that use a roced command run then.
//
// Cases run one after another. Cases with the same requirements share a testbed: an MTU, a wire between host and switch
// that loses, duplicates and delays packets (lab.BadWire), or a peer that receives trains from its TAP (USO), which
// requires QEMU 8.2 and Linux 6.12.
package main
