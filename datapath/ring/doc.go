// Package ring is the memory that a program and the card share: send queues,
// receive queues, completion queues and the doorbell, and the numbers in them. It is what both
// sides of the trust boundary agree on, embedded (Go memory) as over the daemon (a memfd).
//
//	program                       memory                          card
//	SendProducer  ── WQE ──►  [producer|consumer|slots]  ── WQE ──►  SendConsumer
//	RecvProducer  ── WQE ──►  [producer|consumer|slots]  ── WQE ──►  RecvConsumer
//	CompletionConsumer ◄─ CQE ─ [producer|consumer|slots] ◄─ CQE ──  CompletionProducer
//	Doorbell.Ring ── bits ──► [summary|bits|asleep]      ── bits ──► Doorbell.Collect
//
// A queue starts with two groups of words, 128 bytes apart so that the two
// writers do not share a cache line (nor the line the processor fetches beside it):
//
//	  0  words that the producer writes
//	128  words that the consumer writes
//	256  slots, a power of two of them, of a stride fixed at creation
//
// Trust: each side keeps its own index in private memory and only copies it
// out. It loads the other side's index atomically and bounds it before use. The
// card copies an entry out first and checks the copy; nothing is checked in
// shared memory and read again. A peer that lies harms itself: a consumer that
// sees an index out of bounds sees an empty queue, a producer a full one.
//
// Each end of a queue is used by one goroutine at a time; the owner holds the
// lock that sees to it (verbs: one lock per queue; the card: its lease). Publish
// makes entries visible, and costs a locked instruction: once per batch.
//
// Integers are little-endian whatever the machine. The index words are native:
// both sides are on one host.
//
// What the fields hold is agreed on here as well: numbers.go has every number of libibverbs that
// crosses, once, for both sides. ring.h is the same for C, and a test holds the two together.
//
// Left out: anything that gives an entry a meaning; that is verbs on one side and datapath on
// the other.
package ring
