// SPDX-License-Identifier: Apache-2.0

// Rates measures messages between two virtual machines, as roced, the kernel's
// Soft-RoCE (rdma_rxe) and its UDP sockets carry them, and prints the ratios.
//
//	left (a virtual machine)         switch          right (a virtual machine)
//	┌───────────────────────┐   ┌───────────────┐   ┌─────────────────────────┐
//	│ udp    bench          │   │               │   │          bench   udp    │
//	│ rxe    ib_send_bw     ──TAP──── br0 ────TAP──     ib_send_bw   rxe      │
//	│ roced  roced perf     │   │               │   │     roced perf   roced  │ as the card chooses its way to the network
//	│ roced-udp  the same   │   │               │   │     the same            │ over UDP sockets
//	└───────────────────────┘   └───────────────┘   └─────────────────────────┘
//	        sends                                             receives
//
// The machines are the same for all: kernel, processors, memory, virtio card
// without offloads. They take turns, in several rounds, and each figure is the median of
// its rounds. What counts is what was received. Soft-RoCE is on the card only while it is
// measured.
//
// Emulation (TCG) makes everything ten to a hundred times slower, by different factors. So only ratios
// are meaningful, on a machine that does nothing else, and nothing here passes or fails on a rate: an
// error is a measurement that could not be made.
//
// Each contender is measured both sleeping and spinning while it waits, and is compared at the end in its better
// way. With one processor a machine's spinning program takes time from the kernel's half of the work: at the lowest
// priority (nice 19) roced's rate was a fifth higher. And two machines that spin leave nothing of two processors
// for the threads that emulate their network cards.
//
// With -traces the sender's kernel writes down what it does in one more turn of each contender: who runs,
// who wakes whom, system calls, interrupts, packets. That makes everything slower.
//
// A machine has one processor unless more are asked for: two machines with two each, and their network cards, would
// be six threads.
package main
