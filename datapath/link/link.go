package link

// MaxBurst is the most frames that one Receive returns.
const MaxBurst = 64

// Link is the port of a card. All methods but SetAsleep and Close are called under the engine's lease.
type Link interface {
	// Receive fills burst with frames that have arrived and returns their number. It does not
	// wait. The frames are borrowed, and may be written to, until Release.
	Receive(burst [][]byte) int
	// Release returns the frames of the last Receive to the link.
	Release()

	// Reserve returns a frame to build a packet in; nil when none is free. Unless it is committed,
	// the next Reserve returns it again.
	Reserve() []byte
	// Commit queues the first length bytes of the reserved frame for sending.
	Commit(length int)
	// Flush sends the committed frames, and reports whether none is left. A later Flush sends
	// those that are left.
	Flush() (done bool)
	// TakeBack is called when the link goes down: committed frames that wait are not to be sent
	// when it comes up again. TakenBack is the number of frames that are found to be unsent
	// because of it, since the last call; a later Flush may find more.
	TakeBack()
	TakenBack() (frames int)
	// Refused is the number of frames that the interface dropped instead of sending, since the
	// last call.
	Refused() (frames int)

	// Descriptors are the descriptors that a sleeping worker polls for input.
	Descriptors() []int
	// SetAsleep says whether the worker sleeps, or is about to. While it does, each frame that
	// arrives makes a descriptor readable.
	SetAsleep(asleep bool)

	// Close frees everything. The engine has stopped.
	Close() error
}
