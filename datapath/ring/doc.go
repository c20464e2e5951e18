// SPDX-License-Identifier: Apache-2.0

// Package ring defines the memory that a program and the card share: send queues, receive queues, completion queues and
// the doorbell. It is the trust boundary between both. The memory is Go memory if the card is in the program's process,
// and a memfd if the program uses the service.
//
//	program                       memory                          card
//	SendProducer  ── WQE ──►  [producer|consumer|slots]  ── WQE ──►  SendConsumer
//	RecvProducer  ── WQE ──►  [producer|consumer|slots]  ── WQE ──►  RecvConsumer
//	CompletionConsumer ◄─ CQE ─ [producer|consumer|slots] ◄─ CQE ──  CompletionProducer
//	Doorbell.Ring ── bits ──► [summary|bits|asleep]      ── bits ──► Doorbell.Collect
//
// A queue starts with two groups of words. They are 128 bytes apart, so that the two sides do not write to the same
// cache line, nor to the adjacent line that the processor prefetches:
//
//	  0  words that the producer writes
//	128  words that the consumer writes
//	256  slots; their number is a power of two, their stride is fixed at creation
//
// # Trust
//
// Each side keeps its own index in private memory, and only copies it to the shared word. It loads the other side's
// index atomically and checks its bounds before use. The card copies an entry first and checks the copy; after a check
// it does not read the shared memory again. A side that writes invalid values harms only itself: the consumer ignores
// an index that is out of bounds or has decreased, and the producer treats an index that is out of bounds as a full
// queue.
//
// # Use
//
// A completion queue has two more words, with which a program requests events (arming.go). A resize creates a new queue
// in new memory: the card switches to it between two rounds, and the program reads the remaining entries of the old
// one.
//
// Each end of a queue is used by one goroutine at a time, under a lock of its owner (verbs: one lock per queue; the
// card: its lease). Publish makes entries visible. It executes a locked instruction, so it is called once per batch.
//
// Integers in entries are little-endian on every machine. The index words are in host byte order, as both sides are on
// the same host.
//
// The numbers in the fields are those of package ib; numbers.h defines them for C. ring.h defines the layouts for C; a
// test compares them with those of this package.
//
// Package verbs posts and polls entries on the program's side, and package datapath executes them on the card's side.
package ring
