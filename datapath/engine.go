package datapath

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/conn/dcqcn"
	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/peers"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
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
	runner *runner.Runner
	helper *helper // nil: the worker runs only its own rounds
	closed bool    // the link is closed, nothing runs any more
	kicks  int     // rounds of kicks since packets were last looked for
	faults int     // rounds in a row that have ended in one

	link      link.Link
	memory    link.Port // the link, if frames never leave memory: they need no ICRC, and may be long; else nil
	glancing  glancing
	numbering numbering // IPv4 identifications

	tables      tables
	taps        taps
	doorbells   doorbells
	round       round
	completions completions
	timers      deadlines
	flights     flight.Scheduler // what connections have in flight
	peers       siblings
	counters    Counters
	rx          arrival       // the packet from the link in hand
	tx          departure     // the send request in hand
	pieces      region.Pieces // of the receive that a packet is written to

	congestion  *dcqcn.Parameters // nil: connections ignore congestion
	ahead       *conn.Ahead       // packets that connections keep; nil: none
	noteRefused func()            // see Config
	noteFault   func(Fault)       // see Config
}

// round is the state of the round in hand, and what it leaves for the next one.
type round struct {
	budget    int       // what is left of it
	hand      *Session  // whose work is in hand; nil: no session's
	time      time.Time // of the round; zero until it is needed
	turns     turns     // queue pairs with requests left
	arriving  fanout    // of a received packet
	looping   fanout    // of a packet that this card sent
	accepting accepting // queue pairs that acknowledge requests in the next round
	blocked   bool      // the link could not take everything: flush again without a doorbell
	held      int       // packets that wait for neighbours; see Path

	taken, seen int // frames in the burst, and those of them that the link was asked for
}

// now returns the time of the round. It is read once, when it is first needed.
func (r *round) now() time.Time {
	if r.time.IsZero() {
		r.time = time.Now()
	}
	return r.time
}

// listening is how a round looks for packets.
type listening uint8

const (
	deaf    listening = iota // not at all
	glances                  // as who looks again at once: it may miss some now and then, if that is quicker
	listens
)

// arrival is the scratch of receiving: the packet in hand, and the receive request that takes it.
// There are three: for packets from the link, for packets that this engine sends to itself, and for packets from other
// engines of the card. Sending and receiving share none.
type arrival struct {
	engine  *Engine
	packet  wire.Packet
	packets uint64   // that it says it stands for
	sender  wire.QPN // the queue pair of this card that sent it; 0: it came from the link
	marked  bool     // by a queue on its way
	recv    ring.Recv
}

// departure is the scratch of sending: the request in hand and the packet made of it.
type departure struct {
	engine   *Engine
	send     ring.Send
	pieces   region.Pieces // the request's memory
	datagram wire.Datagram
	packet   conn.Packet // of a connection
	frame    []byte      // packets that the link does not take are built here
	looped   arrival     // of a packet that this card sends to itself
	across   peers.Route // other engines of the card that the packet is for; none: only this one
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
func newEngine(c Config, card *peers.Card) (*Engine, error) {
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
	e.rx.engine, e.tx.engine, e.tx.looped.engine, e.taps.engine, e.timers.engine = e, e, e, e, e
	e.completions.engine, e.completions.clock = e, newClock()
	e.doorbells.round = &e.round
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
	if card != nil {
		if err = e.peers.join(e, card); err != nil {
			e.peers.Close()
			return nil, err
		}
		e.flights.Card = &card.Flights
	}
	how := runner.Config{Spin: c.Spin, Alone: c.Alone, Descriptors: e.descriptors(), InMemory: e.memory != nil}
	if e.runner, err = runner.New(how, e); err != nil {
		e.peers.Close()
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
	e.peers.Close()
	return e.link.Close()
}

// descriptors are readable when there is something to receive.
func (e *Engine) descriptors() []int {
	return append(e.peers.Descriptors(), e.link.Descriptors()...)
}

// Counters returns a copy of the counters, taken between two rounds.
func (e *Engine) Counters() (c Counters) {
	e.Do(func() { c = e.counters })
	return c
}

// AddQP makes the engine serve a queue pair. The control plane chooses numbers so that no two queue
// pairs have the same number modulo the size of the table.
func (e *Engine) AddQP(qp *QP) {
	qp.service.open(e, qp)
	e.tables.count++
	e.tables.qps[qp.Number%maxQPs] = qp
	if e.peers.Peer != nil {
		e.peers.AddQP(qp.Number)
	}
	s := qp.Session
	s.qps = grow(s.qps, int(qp.DoorbellIndex))
	s.qps[qp.DoorbellIndex] = qp
	s.doorbell.Serve(len(s.qps))
	for _, cq := range qp.cqs() {
		cq.QPs[qp] = struct{}{}
	}
}

// RemoveQP removes a queue pair.
func (e *Engine) RemoveQP(qp *QP) {
	qp.service.close()
	e.tables.count--
	e.tables.qps[qp.Number%maxQPs] = nil
	if e.peers.Peer != nil {
		e.peers.RemoveQP(qp.Number)
	}
	qp.Session.qps[qp.DoorbellIndex] = nil
	for _, cq := range qp.cqs() {
		delete(cq.QPs, qp)
	}
	e.round.turns.remove(qp)
}

// Prefers reports whether packets for a queue pair of this number arrive at the engine's own link, where the network
// distributes packets by number (link.Network.Ports).
func (e *Engine) Prefers(number wire.QPN) bool { return e.peers.Prefers(number) }

// setGroup replaces the queue pairs that are attached to a group. Without members the group is
// removed.
func (e *Engine) setGroup(mgid wire.GID, members []*QP) {
	e.tables.passed = passedPair{}
	e.round.arriving.keepMembers(mgid, members)
	e.round.looping.keepMembers(mgid, members)
	if len(members) == 0 {
		delete(e.tables.groups, mgid)
		return
	}
	e.tables.groups[mgid] = members
}

// setLink notes whether the link accepts frames; see Workers.SetLink.
func (e *Engine) setLink(up bool) {
	if e.tables.down == !up {
		return
	}
	e.tables.down = !up
	e.round.blocked = up // flush what waits
	if e.tables.down {
		e.link.TakeBack()
	}
}

// flushLink flushes the link, and reports whether that unblocked it.
func (e *Engine) flushLink() (unblocked bool) {
	was := e.round.blocked
	e.round.hand = nil
	e.round.blocked = !e.link.Flush() && !e.tables.down // a link that is down is tried again after setLink
	e.counters.Drops[DropLinkDown] += uint64(e.link.TakenBack())
	if refused := e.link.Refused(); refused > 0 {
		e.counters.Drops[DropInterface] += uint64(refused)
		e.noteRefused()
	}
	return was && !e.round.blocked
}
