// SPDX-License-Identifier: Apache-2.0

package link

// maxBurst is the maximum number of frames of one Receive of an XDP link or a Port.
const maxBurst = 64

// Link is the port of a card. All methods except SetAsleep and Close are called under the engine's lease.
type Link interface {
	// Receive fetches frames that have arrived, and returns their number. It does not block.
	Receive() int
	// Next returns the next frame of the last Receive. It is borrowed, and may be written to, until the next call of
	// Next or Release.
	Next() []byte
	// Behind returns the n-th frame (from 0) after the last one that Next has returned, without fetching it. It returns
	// nil if that frame is not part of the last Receive, or is not available in advance. The frame is borrowed like
	// that of Next, and must not be written to.
	Behind(n int) []byte
	// Release returns the frames of the last Receive to the link.
	Release()
	// Numbers reports whether the IPv4 identification is assigned below the link, not by the engine. If so, frames are
	// committed with 0 in that field, and the identification and Don't Fragment flag of received frames are guessed
	// (see wire.Numbering).
	Numbers() bool

	// Room returns the capacity for packets that have arrived and are not received yet, in bytes; 0 if it is not
	// limited in bytes. The peer's capacity is assumed to be the same.
	Room() int

	// Reserve returns a frame to build a packet in; nil if no frame is free. If it is not committed, the next Reserve
	// returns it again.
	Reserve() []byte
	// Commit queues the first length bytes of the reserved frame for sending.
	Commit(length int)
	// Flush sends the committed frames, and reports whether all were sent. A later Flush sends the remaining ones.
	Flush() (done bool)
	// TakeBack is called when the link goes down: waiting committed frames must not be sent when it comes up again.
	// TakenBack returns the number of frames that were found unsent for this reason since the last call; a later Flush
	// may find more.
	TakeBack()
	TakenBack() (frames int)
	// Refused returns the number of frames that the interface dropped instead of sending, since the last call.
	Refused() (frames int)

	// Descriptors returns the descriptors that a sleeping worker polls for input.
	Descriptors() []int
	// SetAsleep sets whether the worker sleeps, or is about to sleep. While it does, each frame that arrives makes a
	// descriptor readable, or calls the function of Port.SetWake.
	SetAsleep(asleep bool)

	// Close releases all resources. The engine has stopped before.
	Close() error
}

// Glancer is a link with a faster alternative to Receive. Glance may return 0 although packets have arrived, so it is
// only for callers that soon poll again.
type Glancer interface{ Glance() int }
