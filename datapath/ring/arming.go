// SPDX-License-Identifier: Apache-2.0

package ring

import "sync/atomic"

// Arming is a set of bits in a completion queue's memory with which a program requests events. The program sets bits,
// and the card clears the bits whose events it sends, so each arming causes one event.
type Arming uint32

// The armings. The first three together cause one notification of the program, when the first of them is due. ArmedWait
// and ArmedFutex are independent of them.
const (
	ArmedNext      Arming = 1 << 0 // due at the next completion
	ArmedSolicited Arming = 1 << 1 // due at the next solicited or failed completion
	ArmedCount     Arming = 1 << 2 // due when the number of unread completions reaches the threshold
	ArmedWait      Arming = 1 << 3 // due at the next completion; wakes programs that sleep in a wait
	// ArmedFutex is due at the next completion. It wakes threads that sleep on the card's index word as a futex.
	ArmedFutex Arming = 1 << 4

	armedNotify = ArmedNext | ArmedSolicited | ArmedCount
)

const (
	cqArmedWord     = consumerWords + 4
	cqThresholdWord = consumerWords + 8
)

// Notifies reports whether a includes an arming for a notification.
func (a Arming) Notifies() bool { return a&armedNotify != 0 }

// Sleeps reports whether a includes ArmedFutex.
func (a Arming) Sleeps() bool { return a&ArmedFutex != 0 }

// Waits reports whether a includes ArmedWait.
func (a Arming) Waits() bool { return a&ArmedWait != 0 }

// arms holds the words with which a program arms a queue.
type arms struct{ armed, threshold *atomic.Uint32 }

func newArms(memory []byte) arms {
	return arms{word(memory, cqArmedWord), word(memory, cqThresholdWord)}
}

// Armed returns the armings of the queue. It pairs with arm and roced_cq_arm in verbs/c/queue.h: the card stores the
// index before it loads this word.
func (a *arms) Armed() Arming { return Arming(a.armed.Load()) }

// Due returns the armings that are due after completions have been published. solicited is true if these include a
// solicited or failed completion.
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

// Disarm ends the due armings and returns those that were still set. The caller must send their events. A due
// notification ends all armings for notifications.
func (q *CompletionProducer) Disarm(due Arming) (ended Arming) {
	if due.Notifies() {
		due |= armedNotify
	}
	return Arming(q.armed.And(^uint32(due))) & due
}

// HandOver moves the armings to the queue to which the card will write from now on.
func (q *CompletionProducer) HandOver(to *CompletionProducer) {
	to.threshold.Store(q.threshold.Load())
	to.armed.Or(q.armed.Swap(0)) // pairs with TakeLate and roced_cq_move
}

// Arm requests a notification of the next completion, or only of the next solicited or failed one. If both are
// requested, the former applies. The caller must poll once more afterwards, before it sleeps.
func (q *CompletionConsumer) Arm(solicitedOnly bool) {
	if solicitedOnly {
		q.arm(ArmedSolicited)
	} else {
		q.arm(ArmedNext)
	}
}

// SetThreshold sets the number of unread completions for ArmCount. It may be called while the queue is armed. It pairs
// with Due.
func (q *CompletionConsumer) SetThreshold(unread uint32) { q.threshold.Store(unread) }

// ArmCount requests a notification when the number of unread completions reaches the threshold. The card checks the
// number when it publishes completions; the caller must check it once after ArmCount.
func (q *CompletionConsumer) ArmCount() { q.arm(ArmedCount) }

// ArmWait requests a wake-up at the next completion. The caller must poll once more afterwards, before it sleeps.
func (q *CompletionConsumer) ArmWait() { q.arm(ArmedWait) }

// IndexWord returns the word with the card's index, on which threads of the program sleep after they have set
// ArmedFutex.
func (q *CompletionProducer) IndexWord() *atomic.Uint32 { return q.shared }

// TakeLate adds the armings of the queue from that were set after the card had switched to q, and returns them.
func (q *CompletionConsumer) TakeLate(from *CompletionConsumer) (late Arming) {
	late = from.Armed()
	q.arm(late)
	return late
}

// arm sets bits. It pairs with Armed: the program changes this word before it loads the index
// (CompletionConsumer.Available).
func (a *arms) arm(bits Arming) { a.armed.Or(uint32(bits)) }
