// SPDX-License-Identifier: Apache-2.0

// Package ring defines the memory that a program and the card share: send queues, receive queues, completion queues and
// the doorbell. It is the interface at the trust boundary, both embedded (Go memory) and over the service (a memfd).
//
//	program                       memory                          card
//	SendProducer  ── WQE ──►  [producer|consumer|slots]  ── WQE ──►  SendConsumer
//	RecvProducer  ── WQE ──►  [producer|consumer|slots]  ── WQE ──►  RecvConsumer
//	CompletionConsumer ◄─ CQE ─ [producer|consumer|slots] ◄─ CQE ──  CompletionProducer
//	Doorbell.Ring ── bits ──► [summary|bits|asleep]      ── bits ──► Doorbell.Collect
//
// A queue starts with two groups of words. They are 128 bytes apart, so that the two writers do not
// share a cache line, nor the neighbouring line that the processor prefetches:
//
//	  0  words that the producer writes
//	128  words that the consumer writes
//	256  slots; their number is a power of two, their stride is fixed at creation
//
// Trust: each side keeps its own index in private memory and only copies it to the shared word. It loads the other
// side's index atomically and bounds it before use. The card copies an entry first and checks the copy; it never reads
// shared memory again after a check. A peer that writes invalid values harms only itself: the consumer ignores an index
// that is out of bounds or has decreased, and the producer treats one that is out of bounds as a full queue.
//
// A completion queue has two more words, by which a program requests events (arming.go). A resize is a new queue in new
// memory: the card leaves the old one between two rounds, and the program reads the remaining entries of the old one.
//
// Each end of a queue is used by one goroutine at a time, under a lock of its owner (verbs: one lock per queue; the
// card: its lease). Publish makes entries visible. It costs a locked instruction, so it is called once per batch.
//
// Integers in entries are little-endian on every machine. The index words have the host's byte order: both sides are on
// one host.
//
// The numbers in the fields are those of package ib; numbers.h contains them for C. ring.h contains the layouts for C;
// a test compares them with these.
//
// The execution of entries is in verbs on the program's side and in datapath on the card's.
package ring
