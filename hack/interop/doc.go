// SPDX-License-Identifier: Apache-2.0

// Interop tests roced against an independent peer: the kernel's Soft-RoCE (rdma_rxe) in a virtual
// machine, with the unmodified programs of rdma-core and perftest, and pyverbs.
//
//	host (a namespace)            switch (a namespace)            peer (a virtual machine)
//	┌────────────────┐    ┌─────────────────────────────┐    ┌──────────────────────┐
//	│ roced on eth0  ──────── port1    br0    port2 ─────TAP── eth0, rxe0           │
//	│ 10.98.0.1      │    │        snoops, asks         │    │ 10.98.0.2            │
//	│ fd98::1        │    │  every case is captured     │    │ fd98::2              │
//	└────────────────┘    └─────────────────────────────┘    └──────────────────────┘
//
// "make interop" runs it. It prints a line for each case, and fails if one fails. The frames of each
// case are captured on the peer's port; tshark must find nothing wrong in them.
//
// Roced sends as -tx says. The default is automatic, which on this interface means without trains; "make interop"
// runs all cases with trains as well. Cases with "trains" in their name always use them. A frame that was captured
// as a train is judged as its packets.
//
// With -workers 2 the host's interface has two queues, over which the peer's packets are spread by their source port
// (lab.SpreadByPort), and each card of roced's has two workers. Commands are then clients of a service. A
// packet in the queue of the worker that does not serve its program is handed over.
//
// With -zerocopy MODEL the host is a virtual machine too, with the newest kernel that Debian has and a network card of
// that model (virtio-net-pci, igb), which roced uses in zero-copy. Of the cases are run those whose end of roced's is
// one of its commands.
//
// Cases run one after another. Each gets a testbed, which lives as long as the cases of one kind: an MTU,
// a wire between host and switch that loses, repeats and delays packets (lab.BadWire), or a peer that takes
// trains from its TAP (USO), which needs QEMU 8.2 and has Linux 6.12.
package main
