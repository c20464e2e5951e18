package ring

import "sync/atomic"

// Arming is what a program has asked of a completion queue: for which completion it wants an event.
// It is a word of bits in the queue's memory. The program sets bits, and the card clears those
// whose event it sends. So each arming has one event.
type Arming uint32

// The armings. The first three are for one event of the program's notification, whichever is due
// first. ArmedWait is for programs that sleep in a wait, and is apart from them.
const (
	ArmedNext      Arming = 1 << 0 // the next completion
	ArmedSolicited Arming = 1 << 1 // the next solicited or failed one
	ArmedCount     Arming = 1 << 2 // as soon as so many are unread as the threshold says
	ArmedWait      Arming = 1 << 3 // the next completion
	// ArmedFutex is for threads that sleep on the card's index word as a futex, and is apart too: the next completion.
	ArmedFutex Arming = 1 << 4

	armedNotify = ArmedNext | ArmedSolicited | ArmedCount
)

const (
	cqArmedWord     = consumerWords + 4
	cqThresholdWord = consumerWords + 8
)

// Notifies reports whether an arming for a notification is among them.
func (a Arming) Notifies() bool { return a&armedNotify != 0 }

// Sleeps reports whether ArmedFutex is among them.
func (a Arming) Sleeps() bool { return a&ArmedFutex != 0 }

// Waits reports whether ArmedWait is among them.
func (a Arming) Waits() bool { return a&ArmedWait != 0 }

// arms are the words that a program arms a queue with.
type arms struct{ armed, threshold *atomic.Uint32 }

func newArms(memory []byte) arms {
	return arms{word(memory, cqArmedWord), word(memory, cqThresholdWord)}
}

// Armed returns the armings of the queue. It pairs with arm and roced_cq_arm in verbs/c/queue.h: the card stores the index,
// then it loads this word.
func (a *arms) Armed() Arming { return Arming(a.armed.Load()) }

// Due is the part of what the queue is armed for that is due now that completions have been
// published. solicited says that a solicited or failed one is among them.
func (q *CompletionProducer) Due(solicited bool) (due Arming) {
	armed := q.Armed()
	due = armed & (ArmedNext | ArmedWait | ArmedFutex)
	if solicited {
		due |= armed & ArmedSolicited
	}
	if armed&ArmedCount != 0 && q.Unread() >= q.threshold.Load() {
		due |= ArmedCount
	}
	return due
}

// Disarm ends the armings that are due, and gives those that were still there: the caller sends their
// events. A notification that is due ends all armings for one.
func (q *CompletionProducer) Disarm(due Arming) (ended Arming) {
	if due.Notifies() {
		due |= armedNotify
	}
	return Arming(q.armed.And(^uint32(due))) & due
}

// HandOver moves the armings to the queue that the card writes from now on.
func (q *CompletionProducer) HandOver(to *CompletionProducer) {
	to.threshold.Store(q.threshold.Load())
	to.armed.Or(q.armed.Swap(0)) // pairs with TakeLate and roced_cq_move
}

// Arm asks for a notification of the next completion, or only of the next solicited or failed one. The
// next one goes over a solicited one. The caller must look for completions once more afterwards,
// before it sleeps.
func (q *CompletionConsumer) Arm(solicitedOnly bool) {
	if solicitedOnly {
		q.arm(ArmedSolicited)
	} else {
		q.arm(ArmedNext)
	}
}

// SetThreshold sets the number of unread completions that ArmCount asks for. It may change while the
// queue is armed. It pairs with Due.
func (q *CompletionConsumer) SetThreshold(unread uint32) { q.threshold.Store(unread) }

// ArmCount asks for a notification when as many completions are unread as the threshold says. The card
// looks when it has published some; the caller must look afterwards whether they are there already.
func (q *CompletionConsumer) ArmCount() { q.arm(ArmedCount) }

// ArmWait asks for a wake-up at the next completion. The caller must look for completions once more
// afterwards, before it sleeps.
func (q *CompletionConsumer) ArmWait() { q.arm(ArmedWait) }

// IndexWord is the card's index, on which threads of the program sleep that have set ArmedFutex.
func (q *CompletionProducer) IndexWord() *atomic.Uint32 { return q.shared }

// TakeLate takes the armings over that another queue still has. The card had left that queue before
// they were made.
func (q *CompletionConsumer) TakeLate(from *CompletionConsumer) (late Arming) {
	late = from.Armed()
	q.arm(late)
	return late
}

// arm pairs with Armed: the program changes this word, then it loads the index (CompletionConsumer.Available).
func (a *arms) arm(bits Arming) { a.armed.Or(uint32(bits)) }
