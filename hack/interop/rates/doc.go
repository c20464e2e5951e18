// SPDX-License-Identifier: Apache-2.0

// Rates compares messages between two virtual machines over roced, the kernel's Soft-RoCE (rdma_rxe) and UDP sockets,
// and prints the ratios.
//
//	left (a virtual machine)         switch          right (a virtual machine)
//	┌───────────────────────┐   ┌───────────────┐   ┌─────────────────────────┐
//	│ udp    bench          │   │               │   │          bench   udp    │
//	│ rxe    ib_send_bw     ──TAP──── br0 ────TAP──     ib_send_bw   rxe      │
//	│ roced  roced perf     │   │               │   │     roced perf   roced  │ network chosen automatically
//	│ roced-udp  the same   │   │               │   │     the same            │ over UDP sockets
//	└───────────────────────┘   └───────────────┘   └─────────────────────────┘
//	        sends                                             receives
//
// The kernel, processors, memory and virtio card (without offloads) are the same for all contenders. They run
// alternately in several rounds, and each figure is the median of its rounds. Rates count received messages. Soft-RoCE
// is loaded only while it is measured.
//
// Emulation (TCG) slows everything down by different factors between 10 and 100. So only ratios on an otherwise idle
// machine are meaningful. No rate makes this program fail: errors mean that a measurement was not possible.
//
// Each contender is measured both sleeping and spinning while it waits, and the summary compares the better results. On
// a machine with one processor, a spinning program takes time from the kernel: at the lowest priority (nice 19) roced's
// rate was 20 % higher. Two spinning machines use two processors completely, without time for the threads that emulate
// their network cards.
//
// With -traces the sender's kernel traces one more round of each contender: scheduling, wake-ups, system calls,
// interrupts and packets. Traced rounds are slower.
//
// A machine has one processor by default: two machines with two each would have six threads with those of their network
// cards.
package main
