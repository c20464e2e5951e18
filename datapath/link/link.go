package link

// maxBurst is the most frames that one Receive of an XDP link or a Port takes.
const maxBurst = 64

// Link is the port of a card. All methods but SetAsleep and Close are called under the engine's lease.
type Link interface {
	// Receive takes frames that have arrived, and returns their number. It does not wait.
	Receive() int
	// Next is the next of the frames of the last Receive. It is borrowed, and may be written to, until
	// the next call of Next or Release.
	Next() []byte
	// Behind is the n-th of the frames that Next gives from now on; nil if there is none, or it is made only when its turn
	// has come. It is borrowed as that of Next, and not to be written to.
	Behind(n int) []byte
	// Release returns the frames of the last Receive to the link.
	Release()
	// Numbers says that not the engine gives packets their IPv4 identification, but what the link sends
	// through. Then frames are committed with 0 there; in one that has arrived it is a guess, as Don't
	// Fragment is (see wire.Numbering).
	Numbers() bool

	// Room is how many bytes of packets the link takes in before they are received; 0 if it is not bytes that bound
	// that. A peer's is taken to be as large.
	Room() int

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
	// arrives makes a descriptor readable, or calls what Port.SetWake has set.
	SetAsleep(asleep bool)

	// Close frees everything. The engine has stopped.
	Close() error
}

// Glancer is a link that can be looked at more quickly than by Receive. Glance may find nothing although something has
// arrived, so it is for who looks again at once.
type Glancer interface{ Glance() int }
