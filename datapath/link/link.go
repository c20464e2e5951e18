// SPDX-License-Identifier: Apache-2.0

package link

// maxBurst is the maximum number of frames of one Receive of an XDP link or a Port.
const maxBurst = 64

// Link is the port of a card. All methods except SetAsleep and Close are called under the engine's lease.
type Link interface {
	// Receive fetches frames that have arrived, and returns their number. It does not wait.
	Receive() int
	// Next returns the next frame of the last Receive. It is borrowed, and may be written to, until the next call of
	// Next or Release.
	Next() []byte
	// Behind returns the n-th frame after those returned by Next; nil if it does not exist, or does not exist yet. It
	// is borrowed as that of Next, and must not be written to.
	Behind(n int) []byte
	// Release returns the frames of the last Receive to the link.
	Release()
	// Numbers reports whether the IPv4 identification is assigned below the link, not by the engine. Then frames are
	// committed with 0 in that field; in a received frame it is a guess, as is Don't Fragment (see wire.Numbering).
	Numbers() bool

	// Room returns the capacity for packets that are not received yet, in bytes; 0 if it is not limited in bytes. The
	// peer's capacity is assumed to be equal.
	Room() int

	// Reserve returns a frame to build a packet in; nil when none is free. Unless it is committed,
	// the next Reserve returns it again.
	Reserve() []byte
	// Commit queues the first length bytes of the reserved frame for sending.
	Commit(length int)
	// Flush sends the committed frames, and reports whether all were sent. A later Flush sends the others.
	Flush() (done bool)
	// TakeBack is called when the link goes down: waiting committed frames must not be sent when it comes up again.
	// TakenBack returns the number of frames found unsent for this reason since the last call; a later Flush may find
	// more.
	TakeBack()
	TakenBack() (frames int)
	// Refused returns the number of frames that the interface dropped instead of sending, since the last call.
	Refused() (frames int)

	// Descriptors returns the descriptors that a sleeping worker polls for input.
	Descriptors() []int
	// SetAsleep records whether the worker sleeps, or is about to. While it does, each frame that arrives makes a
	// descriptor readable, or calls the function of Port.SetWake.
	SetAsleep(asleep bool)

	// Close releases everything. The engine has stopped.
	Close() error
}

// Glancer is a link with a faster alternative to Receive. Glance may find no packets although some have arrived, so it
// is for callers that poll again soon.
type Glancer interface{ Glance() int }
