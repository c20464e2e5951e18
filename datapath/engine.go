package datapath

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
)

const (
	maxQPs = 1 << 16

	// What a round does at most, so that nobody who runs one, or waits for its end, is kept long.
	receiveBudget = 256  // frames, and further copies of them to groups
	sendBudget    = 128  // requests, copies to groups of this device, flushed requests
	changeBudget  = 1024 // flushed requests of a change between two rounds
	sendTurn      = 32   // requests of one queue pair before the next one has its turn
)

// Engine runs one device's queue pairs over one link. See the package comment
// for who may call what.
type Engine struct {
	lease  sync.Mutex
	wanted atomic.Int32 // control plane's calls that wait for the lease
	called atomic.Bool  // a session has called: see Session
	worker worker       // and what others tell it
	link   link.Link
	closed bool // the link is closed, nothing runs any more

	tables
	backlog
	rx       arrival   // of a packet from the link
	tx       departure // of a request
	counters Counters
	// noteRefused: see Config.
	noteRefused func()
}

// tables are what the control plane has the engine know. They change in Do only.
type tables struct {
	mtu        int // bytes of payload
	vlan       uint16
	down       bool // the link is down: what would be sent is dropped
	own        map[wire.GID]struct{}
	broadcasts map[wire.GID]struct{}
	macs       []wire.MAC         // the interface's; none: any
	passed     passedPair         // the addresses that were looked up last
	groups     map[wire.GID][]*QP // that have queue pairs attached
	qps        *[maxQPs]*QP       // by the low bits of the number
	sessions   []*Session         // whose doorbells are looked at
	dozing     []*Session         // the others
}

// backlog is what a round leaves for the next one.
type backlog struct {
	budget    int    // what is left of the round's
	turns     turns  // queue pairs with requests left
	arriving  fanout // of a received packet
	looping   fanout // of a packet of this device
	dirty     []*CQ  // to publish at the end of the round
	blocked   bool   // the link could not take all: try again without being told
	held      int    // packets that wait for neighbours; see Path
	resting   bool   // programs are told to call
	firstBell int    // the session whose doorbell is looked at first
	id        uint16 // next IPv4 identification

	burst       [link.MaxBurst][]byte
	taken, next int // of the burst: frames in it, and the one to look at next
}

// Config is what an engine is made with.
type Config struct {
	Link   link.Link
	MTU    wire.MTU
	VLAN   uint16 // 0: untagged
	Worker WorkerConfig
	// NoteRefused is told that the interface dropped what was to be sent: it may have lost its
	// carrier, of which the kernel tells only later. It runs under the lease.
	NoteRefused func()
}

// New makes an engine; Start sets its worker going, and Progress works without it.
func New(c Config) (*Engine, error) {
	e := &Engine{
		link: c.Link,
		tables: tables{
			mtu: c.MTU.Bytes(), vlan: c.VLAN, own: map[wire.GID]struct{}{}, groups: map[wire.GID][]*QP{}, qps: new([maxQPs]*QP),
		},
		tx: departure{frame: make([]byte, wire.MaxHeaders+wire.MTU4096.Bytes()+wire.MaxTrailer)},
	}
	if e.noteRefused = c.NoteRefused; e.noteRefused == nil {
		e.noteRefused = func() {}
	}
	if err := e.worker.init(c.Worker, c.Link.Descriptors()); err != nil {
		return nil, err
	}
	return e, nil
}

// Do runs change between two rounds and returns when it has run. What the change
// took out of the engine's tables is not in use any more. If it left work, the worker
// is told.
func (e *Engine) Do(change func()) {
	e.wanted.Add(1)
	e.lease.Lock()
	e.wanted.Add(-1)
	e.budget = changeBudget
	change()
	e.publish()
	more := e.more()
	e.lease.Unlock()
	if more {
		e.worker.call()
	}
}

// runRound is one round: what arrived, what is to be sent, what is to be told.
func (e *Engine) runRound() (worked bool) {
	received := e.receive()
	sent := e.transmit()
	e.publish()
	return received || sent
}

// more reports whether a round left something to do that nobody will tell of again.
func (e *Engine) more() bool { return e.taken > 0 || e.unsent() }

// unsent reports whether something waits that programs have posted, or that is to be
// flushed. What the state of a queue pair holds back does not count.
func (e *Engine) unsent() bool {
	return !e.turns.empty() || e.blocked || e.looping.pending() || e.pending()
}

// Settle runs rounds of sending in the caller's thread until what a session's program has
// posted has left, or been flushed; as long as patience lasts, if the link does not take it.
func (e *Engine) Settle(s *Session, patience time.Duration) {
	for end := time.Now().Add(patience); e.settle(s); {
		if time.Now().After(end) {
			return
		}
	}
}

// settle is one round of Settle; false if nothing is left.
func (e *Engine) settle(s *Session) (unsent bool) {
	e.lease.Lock()
	if e.closed || !e.owes(s) {
		e.lease.Unlock()
		return false
	}
	e.call(s)
	moved := e.transmit()
	e.publish()
	unsent = e.owes(s)
	e.lease.Unlock()
	if unsent && !moved {
		time.Sleep(retryTime)
	}
	return unsent
}

// Progress runs a round in the thread of a program that polls, if nobody else is
// running one, and reports whether it did. Behind the control plane it queues, so
// that neither keeps the other from the engine.
func (e *Engine) Progress() bool {
	if e.wanted.Load() != 0 {
		e.lease.Lock()
	} else if !e.lease.TryLock() {
		e.worker.notePolling()
		return false
	}
	return e.runInline()
}

// Kick does what a session's doorbell asks for when it says that the card is to be called, in
// the caller's thread: quicker than waking the worker.
func (e *Engine) Kick(s *Session) {
	e.call(s)
	if e.wanted.Load() != 0 || !e.lease.TryLock() {
		e.worker.call()
		return
	}
	e.runInline()
	e.worker.noteKick()
}

// runInline runs a round in the caller's thread, who has taken the lease. A worker that
// sleeps gets what is left.
func (e *Engine) runInline() bool {
	if e.closed {
		e.lease.Unlock()
		return false
	}
	e.runRound()
	more := e.more()
	e.lease.Unlock()
	e.worker.notePolling()
	if more && e.worker.is(workerAsleep) {
		e.worker.call()
	}
	return true
}

// Counters is a consistent copy.
func (e *Engine) Counters() (c Counters) {
	e.Do(func() { c = e.counters })
	return c
}
