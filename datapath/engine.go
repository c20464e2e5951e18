// SPDX-License-Identifier: Apache-2.0

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

	// Limits of one round. They bound how long the lease is held.
	receiveBudget = 256  // received frames, and further copies of them to group members
	sendBudget    = 128  // requests, copies to group members on this card, flushed requests
	changeBudget  = 1024 // requests flushed by a change in Do
	sendTurn      = 64   // requests of one queue pair before the turn of the next one

	// maxFrame is the maximum length, in bytes, of a frame that carries one packet. Frames of long packets, which stand
	// for several packets and exist only on in-memory networks, are longer.
	maxFrame = wire.MaxHeaders + 4096 + wire.MaxTrailer
)

// Engine runs the queue pairs of one card over one link. The package comment lists the callers of its methods.
type Engine struct {
	lease  sync.Mutex
	wanted atomic.Int32 // number of calls of Do that wait for the lease
	runner *runner.Runner
	helper *helper // nil: the worker runs only rounds of its own engine
	closed bool    // the link is closed and no rounds run
	kicks  int     // number of consecutive rounds that did not poll the link
	faults int     // number of consecutive rounds that ended in a fault

	link      link.Link
	memory    link.Port // the link, if it is in memory: its frames need no ICRC and may be long; else nil
	glancing  glancing
	numbering numbering // IPv4 identifications

	tables      tables
	taps        taps
	doorbells   doorbells
	round       round
	completions completions
	timers      deadlines
	flights     flight.Scheduler // limits the packets of connections in flight
	peers       siblings
	counters    Counters
	rx          arrival       // the current packet from the link
	tx          departure     // the current send request
	pieces      region.Pieces // memory of the receive request that a packet is written to

	congestion  *dcqcn.Parameters // nil: connections ignore congestion
	ahead       *conn.Ahead       // packets that connections keep although earlier ones are missing; nil: none
	noteRefused func()            // see Config
	noteFault   func(Fault)       // see Config
}

// round is the state of the current round, and the work that it leaves for the next one.
type round struct {
	budget    int       // remaining number of packets and requests
	hand      *Session  // the session whose work is in progress; nil: none
	time      time.Time // the time of the round; zero until first used
	turns     turns     // queue pairs with work left
	arriving  fanout    // delivery of a received packet to a group
	looping   fanout    // delivery of a packet that this card sent to a group
	accepting accepting // queue pairs that acknowledge requests in the next round
	blocked   bool      // the link did not accept all frames: the next round flushes it even without a doorbell
	held      int       // number of packets that wait for the address of a neighbour; see Path

	taken, seen int // number of frames in the burst, and of those that have been fetched from the link
}

// now returns the time of the round. It is read once, when it is first needed.
func (r *round) now() time.Time {
	if r.time.IsZero() {
		r.time = time.Now()
	}
	return r.time
}

// listening is the kind of poll with which a round receives packets.
type listening uint8

const (
	deaf    listening = iota // no poll
	glances                  // a fast poll that may miss packets, because the caller will soon poll again
	listens                  // a complete poll
)

// arrival is the scratch space of receiving: the current packet, and the receive request that it consumes. There are
// three: for packets from the link, for packets that this engine sends to itself, and for packets from other engines of
// the card. They are separate because handling a received packet may send another one.
type arrival struct {
	engine  *Engine
	packet  wire.Packet
	packets uint64   // number of packets that it stands for, from its header: more than 1 for a long packet
	sender  wire.QPN // the queue pair of this card that sent it; 0: it came from the link
	marked  bool     // a congested queue in the network has set its ECN mark
	recv    ring.Recv
}

// departure is the scratch space of sending: the current request and the packet built from it.
type departure struct {
	engine   *Engine
	send     ring.Send
	pieces   region.Pieces // the request's memory
	datagram wire.Datagram
	packet   conn.Packet // the packet, if a connection sends it
	frame    []byte      // buffer for packets that are not sent on the link
	looped   arrival     // the packet, if this card sends it to itself
	across   peers.Route // other engines of the card that receive the packet; empty: none
}

// Config configures an engine.
type Config struct {
	Link  link.Link
	MTU   wire.MTU
	VLAN  uint16        // 0: untagged
	Spin  time.Duration // time for which the worker polls for work before it sleeps; see runner.Config
	Alone bool          // only the worker runs rounds, no program of this process does; see runner.Config
	// Congestion makes connections notify peers of congestion and react to notifications; nil: neither.
	Congestion *dcqcn.Parameters
	// Ahead is the number of packets, for all connections, that are kept if they arrive before a missing one. With 0, a
	// lost packet is retransmitted with all later ones, and only after the timeout, as the specification requires.
	Ahead int
	// NoteRefused is called when the interface has dropped frames that the engine sent. A possible cause is a lost
	// carrier, which the kernel reports only later. NoteRefused runs under the lease and must not block.
	NoteRefused func()
	// NoteFault is called when a round has ended in a panic. It runs under the lease and must not block.
	NoteFault func(Fault)
}

// newAlone returns the only engine of a card. Start starts its worker; Progress and Kick also work before that.
func newAlone(c Config) (*Engine, error) { return newEngine(c, nil) }

// newEngine returns an engine that shares card with other engines. If card is nil, it is the only engine of its card.
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

// Close stops the worker and closes the link. Posted requests that have not been sent are lost; see Settle.
// Afterwards Progress does nothing, and Do runs its change without a round.
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

// descriptors returns the file descriptors that are readable when there are packets to receive.
func (e *Engine) descriptors() []int {
	return append(e.peers.Descriptors(), e.link.Descriptors()...)
}

// Counters returns a copy of the counters, taken between two rounds.
func (e *Engine) Counters() (c Counters) {
	e.Do(func() { c = e.counters })
	return c
}

// AddQP makes the engine serve a queue pair. It runs in Do. The control plane chooses the numbers so that no two queue
// pairs have the same number modulo maxQPs.
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

// RemoveQP ends AddQP. It runs in Do.
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

// Prefers reports whether packets for a queue pair with this number arrive at the engine's own link. This requires a
// network that distributes packets by queue pair number (link.Network.Ports).
func (e *Engine) Prefers(number wire.QPN) bool { return e.peers.Prefers(number) }

// setGroup replaces the queue pairs that are attached to a group. Without members the group is removed.
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

// setLink sets whether the link accepts frames; see Workers.SetLink.
func (e *Engine) setLink(up bool) {
	if e.tables.down == !up {
		return
	}
	e.tables.down = !up
	e.round.blocked = up // flush the waiting frames
	if e.tables.down {
		e.link.TakeBack()
	}
}

// flushLink flushes the link and reports whether that unblocked it.
func (e *Engine) flushLink() (unblocked bool) {
	was := e.round.blocked
	e.round.hand = nil
	e.round.blocked = !e.link.Flush() && !e.tables.down // a link that is down is flushed again by setLink
	e.counters.Drops[DropLinkDown] += uint64(e.link.TakenBack())
	if refused := e.link.Refused(); refused > 0 {
		e.counters.Drops[DropInterface] += uint64(refused)
		e.noteRefused()
	}
	return was && !e.round.blocked
}
