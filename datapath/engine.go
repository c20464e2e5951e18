package datapath

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/conn/dcqcn"
	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/runner"
	"github.com/roced/roced/datapath/wire"
)

const (
	maxQPs = 1 << 16

	// The most that one round does. It bounds how long the lease is held.
	receiveBudget = 256  // received frames, and further copies of them to group members
	sendBudget    = 128  // requests, copies to group members on this card, flushed requests
	changeBudget  = 1024 // requests flushed by a change in Do
	sendTurn      = 64   // requests of one queue pair before the next one has its turn

	// maxFrame is the length of the longest frame that is not of a long packet, in bytes. A long one counts as several.
	maxFrame = wire.MaxHeaders + 4096 + wire.MaxTrailer
)

// Engine runs the queue pairs of one card over one link. The package comment says who may call
// what.
type Engine struct {
	lease  sync.Mutex
	wanted atomic.Int32 // calls of Do that wait for the lease
	waiters
	link   link.Link
	memory link.Port // the link, if frames never leave memory: they need no ICRC, and may be long; else nil
	closed bool      // the link is closed, nothing runs any more

	tables
	taps
	doorbells
	backlog
	completions
	timers  deadlines
	flights flight.Scheduler // what connections have in flight
	roundTime
	rx       arrival       // the packet from the link in hand
	tx       departure     // the send request in hand
	pieces   region.Pieces // of the receive that a packet is written to
	counters Counters
	others   *others // of a card with several engines; nil: this is the only one
	helper   *helper // nil: the worker runs only its own rounds
	// congestion is what connections do about it; nil: nothing
	congestion *dcqcn.Parameters
	ahead      *conn.Ahead // packets that connections keep; nil: none
	faults     int         // rounds in a row that have ended in one
	kicks      int         // rounds of kicks since packets were last looked for
	glancing   glancing
	// noteRefused and noteFault: see Config.
	noteRefused func()
	noteFault   func(Fault)
}

// tables are set by the control plane. They change in Do only.
type tables struct {
	mtu        int // bytes of payload
	vlan       uint16
	down       bool // the link is down: packets to send are dropped
	own        map[wire.GID]struct{}
	broadcasts map[wire.GID]struct{}
	macs       []wire.MAC         // of the interface; none: any destination MAC is taken
	passed     passedPair         // the addresses that were looked up last
	groups     map[wire.GID][]*QP // queue pairs attached to each group
	qps        *[maxQPs]*QP       // by the low bits of the QPN
	count      int                // of qps
	fetched    uint32             // see fetch
}

// backlog is what one round leaves for the next.
type backlog struct {
	budget    int       // what is left of this round's budget
	turns     turns     // queue pairs with requests left
	arriving  fanout    // of a received packet
	looping   fanout    // of a packet that this card sent
	accepting accepting // queue pairs that acknowledge requests in the next round
	blocked   bool      // the link could not take everything: flush again without a doorbell
	held      int       // packets that wait for neighbours; see Path
	numbering           // IPv4 identifications

	taken, seen int // frames in the burst, and those of them that the link was asked for
}

// Config is what an engine is made with.
type Config struct {
	Link  link.Link
	MTU   wire.MTU
	VLAN  uint16        // 0: untagged
	Spin  time.Duration // how long the worker looks for work before it sleeps, see runner.Config
	Alone bool          // no program of this process runs the engine, likewise
	// Congestion has connections notify peers of congestion, and heed their notifications; nil: neither.
	Congestion *dcqcn.Parameters
	// Ahead is how many packets that came ahead of a missing one are kept, for all connections; 0: none, and lost packets
	// are sent again as the specification has it, with everything behind them, no sooner than its time-out.
	Ahead int
	// NoteRefused is called when the interface dropped frames to send. It may have lost its
	// carrier, which the kernel reports only later. It runs under the lease and must not block.
	NoteRefused func()
	// NoteFault is called when a round has ended in a panic. It runs under the lease and must not block.
	NoteFault func(Fault)
}

// newAlone makes an engine that is a card's only one. Its worker runs from Start on; Progress and Kick work without it.
func newAlone(c Config) (*Engine, error) { return newEngine(c, nil) }

// newEngine makes an engine that shares a card with others, or with nil does not.
func newEngine(c Config, shared *sharing) (*Engine, error) {
	e := &Engine{
		link: c.Link,
		tables: tables{
			mtu: c.MTU.Bytes(), vlan: c.VLAN, own: map[wire.GID]struct{}{}, groups: map[wire.GID][]*QP{}, qps: new([maxQPs]*QP),
		},
		tx: departure{frame: make([]byte, maxFrame)},
	}
	e.congestion = c.Congestion
	if c.Ahead > 0 {
		e.ahead = conn.NewAhead(c.Ahead)
	}
	e.completions.engine, e.clock = e, newClock()
	e.numbering = newNumbering(c.Link)
	e.memory, _ = c.Link.(link.Port)
	e.glancing.Glancer, _ = c.Link.(link.Glancer)
	e.taps.port = e.memory
	if e.noteRefused = c.NoteRefused; e.noteRefused == nil {
		e.noteRefused = func() {}
	}
	if e.noteFault = c.NoteFault; e.noteFault == nil {
		e.noteFault = func(Fault) {}
	}
	var err error
	if shared != nil {
		if e.others, err = newOthers(e, shared); err != nil {
			e.others.close()
			return nil, err
		}
		e.flights.Card = &shared.flights
	}
	how := runner.Config{Spin: c.Spin, Alone: c.Alone, Descriptors: e.descriptors(), InMemory: e.memory != nil}
	if e.runner, err = runner.New(how, e); err != nil {
		e.others.close()
		return nil, err
	}
	if e.memory != nil {
		e.memory.SetWake(e.runner.Arrived)
	}
	e.helper = newHelper(e, c.Alone)
	return e, nil
}

// Start starts the worker.
func (e *Engine) Start() { e.runner.Start() }

// Close stops the worker and closes the link. Requests that were posted and not sent are lost; see
// Settle. Afterwards Progress does nothing, and Do runs its change without a round.
func (e *Engine) Close() error {
	e.runner.Stop()
	e.lease.Lock()
	defer e.lease.Unlock()
	e.closed = true
	e.taps.port = nil
	e.runner.Close()
	e.others.close()
	return e.link.Close()
}

// descriptors are readable when there is something to receive.
func (e *Engine) descriptors() []int {
	if e.others == nil || e.memory != nil {
		return e.link.Descriptors()
	}
	return append([]int{e.others.inbox.fd, e.others.relays.fd}, e.link.Descriptors()...)
}

// Waiter is a program that sleeps until a completion comes.
type Waiter = runner.Waiter

// waiters is what those call that wait for the card, without the lease.
type waiters struct{ runner *runner.Runner }

// BeginWait announces that a program is about to sleep until a completion comes. From now on the
// worker or a leader runs the engine, even while other programs poll.
func (w *waiters) BeginWait() { w.runner.BeginWait() }

// EndWait ends what BeginWait began.
func (w *waiters) EndWait() { w.runner.EndWait() }

// NoteReady says that a program was about to wait, and a completion was there.
func (w *waiters) NoteReady() { w.runner.NoteReady() }

// Lead makes a program that waits the leader, and returns true when it need not wait any more. It
// returns false, at once, if another program waits too or the worker is not asleep: then the program
// has to wait for its event. The caller has called BeginWait.
func (w *waiters) Lead(waiter Waiter) (over bool) { return w.runner.Lead(waiter) }

// WakeLeader makes the leader look whether it need not wait any more. Any goroutine may call it.
func (w *waiters) WakeLeader() { w.runner.WakeLeader() }

// Wake makes the worker look at a session's doorbell. Any goroutine may call it at any time.
func (e *Engine) Wake(s *Session) {
	e.call(s)
	e.runner.Call()
}

// HearCalls has the worker watch an eventfd, and take each write to it for a Wake of the session. Any goroutine may
// call it, except under the lease.
func (e *Engine) HearCalls(s *Session, fd int) error {
	return e.runner.HearCalls(fd, func() { e.call(s) })
}

// EndCalls ends HearCalls: the descriptor is not watched any more. Any goroutine may call it, except under the lease.
func (w *waiters) EndCalls(fd int) { w.runner.EndCalls(fd) }

// numbering gives packets their IPv4 identification, or leaves that to the link (see link.Link).
type numbering struct {
	id     uint16          // of the next packet
	solver *wire.Numbering // of identifications that the link does not see; nil if it does
}

func newNumbering(l link.Link) (n numbering) {
	if l.Numbers() {
		n.solver = new(wire.Numbering)
	}
	return n
}

// nextID is the identification of a packet to send.
func (n *numbering) nextID() uint16 {
	if n.solver != nil {
		return 0
	}
	n.id++
	return n.id - 1
}

// solve says whether a packet's ICRC is right for an identification that the link has not seen. If so, the packet
// has it from now on.
func (n *numbering) solve(p *wire.Packet) bool { return n.solver != nil && n.solver.Solve(p) }
