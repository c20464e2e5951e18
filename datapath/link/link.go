package link

// MaxBurst is the most frames that one Receive gives.
const MaxBurst = 64

// Link is the port of a card. All methods but
// Close are called under the lease.
type Link interface {
	// Receive fills burst with frames that have arrived and gives their number. It
	// does not wait. The frames are borrowed, and writable, until Release.
	Receive(burst [][]byte) int
	// Release gives the frames of the last Receive back.
	Release()

	// Reserve gives a frame to build a packet in, nil when none is free. It is
	// handed over by Commit, or handed out again by the next Reserve.
	Reserve() []byte
	// Commit hands the first length bytes of the reserved frame over for sending.
	Commit(length int)
	// Flush sends what was committed, and reports whether nothing is left: what
	// is left goes with a later Flush.
	Flush() (done bool)
	// TakeBack is called when the link is down: what was committed and waits is not to be
	// sent when it is up again. TakenBack tells of how many frames more that is certain; a
	// Flush may find it.
	TakeBack()
	TakenBack() (frames int)
	// Refused is how many frames more the interface dropped instead of sending.
	Refused() (frames int)

	// Descriptors are to be polled for input by a worker that sleeps.
	Descriptors() []int
	// SetAsleep announces that the worker is about to sleep, or has woken. After
	// true, whatever arrives makes a descriptor readable.
	SetAsleep(asleep bool)

	// Close frees everything. The engine has stopped.
	Close() error
}
