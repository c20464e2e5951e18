//go:build linux

package hca

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/provider"
)

// Card is an RDMA card with one port, on an interface or another network.Host. Programs share it; each
// has a session on it. The Card also has a session for the program that opened it, and passes that
// program's commands on to it: so a Card is a provider.Provider. NewSession makes more, for other
// programs or for parts of a program that must not affect each other.
type Card struct {
	program // session, as package verbs sees it, but Close ends the card

	session *Session // of the program that opened it

	host    network.Host
	engine  *datapath.Workers
	paths   *paths.Table
	manager *ids.Manager

	name   atomic.Pointer[string] // the interface's now
	inline bool
	marks  bool // packets of connections may be marked by switches
	vlan   uint16
	log    *slog.Logger

	life life // its work is the goroutines that follow the host, and calls of Session.Close

	changes     *pendingChanges
	refused     chan struct{} // of capacity 1: the interface dropped a packet instead of sending it
	tooBig      tooBig
	lagging     atomic.Bool   // the last query of the host failed
	faults      atomic.Uint64 // contained, except those of the engine's rounds
	faultLogged atomic.Int64  // when one was logged; Unix time, ns

	asking sync.Mutex // held from a query of the port until its answer is acted on

	state atomic.Pointer[portState] // as of the last look; stored under mu

	mu       sync.Mutex
	sessions []*Session // of programs
	own      *Session   // the manager's; nil until it has one
	qps      *handles.Numbers[qp]
	domains  map[domainKey]*domain // XRC domains that an inode names
	srqs     *handles.Numbers[srq] // of type XRC
	groups   *groups
	final    *Statistics // as of Close; nil before
}

// program is what a session is to its program, and to those who look at it.
type program interface {
	provider.Provider
	provider.Progressor
	provider.Leader
	provider.CounterReader
	Objects(kind ObjectKind, from Cursor, most int) (list []Object, next Cursor, more bool, err error)
	IDs(from Cursor, most int) (list []IDInfo, next Cursor, more bool, err error)
	Used() Limits
}

// newCard starts a card on a host. It owns the host, and closes it if it fails.
func newCard(on network.Host, o options) (*Card, error) {
	name := on.Name()
	card := &Card{
		host: on, inline: o.inline, marks: o.congestion == CongestionMark, vlan: on.VLAN(), log: o.log,
		life:    newLife(),
		changes: newPendingChanges(), refused: make(chan struct{}, 1),
		qps: handles.NewNumbers[qp](), srqs: handles.NewNumbers[srq](), domains: map[domainKey]*domain{}, groups: mcast.NewTable[*datapath.QP](groupLimits),
	}
	card.name.Store(&name)
	card.state.Store(&portState{gids: newGIDTable(), asked: o.mtu})
	links, err := on.Links(max(o.workers, 1))
	if err != nil {
		return nil, errors.Join(err, on.Link().Close(), on.Close())
	}
	engine, err := datapath.NewWorkers(datapath.Config{
		MTU: wire.MTU256, VLAN: card.vlan, Spin: o.spin, Alone: !o.inline, Congestion: o.control(), Ahead: o.ahead(),
		NoteRefused: card.noteRefused, NoteFault: card.noteFault,
	}, links)
	if err != nil {
		return nil, errors.Join(err, on.Close())
	}
	on.Start(engine)
	card.engine = engine
	card.paths = paths.NewTable(paths.Config{Host: on, Engine: engine, Name: card.Name, Log: card.log, Kept: o.neighbours})
	card.manager = ids.NewManager(ids.Config{Card: cmCard{card}, Paths: card.paths, Ports: ids.TakePorts(on.Namespace()), Log: card.log})
	if card.session, err = card.NewSession(SessionConfig{}); err == nil {
		card.program = card.session
		err = card.firstLook()
	}
	if err == nil {
		err = card.manager.Open(card.openOwn)
	}
	if err != nil {
		return nil, errors.Join(err, card.Close())
	}
	if o.worker {
		engine.Start()
	}
	on.Follow(follower{card.changes, card})
	for _, run := range []func(){card.keepUp, card.watch, card.manager.Run, on.Listen} {
		card.life.work.Go(func() {
			if f := fault.Contain(run); f != nil { // nobody follows the host any more
				card.faults.Add(1)
				card.logFault(f, "device", card.Name())
				card.fail(f)
			}
		})
	}
	return card, nil
}

// firstLook reads the host's state for the first time. It fails if the interface cannot work as it
// is.
func (card *Card) firstLook() error {
	first, err := card.updatePort()
	if err != nil {
		return err
	}
	if first.unsteered != nil {
		card.log.Error("not all addresses can be used", "device", card.Name(), "error", first.unsteered)
	}
	port := card.port()
	_, tooSmall := port.RDMAMTU()
	return errors.Join(tooSmall, port.Lost)
}

// closeTimeout is how long Close waits for posted requests to be sent.
const closeTimeout = time.Second

// Close stops the card and frees everything that it and its sessions have. Posted requests are sent
// first, for up to a second; those that cannot be sent (the link is down, the queue pair is in SQD)
// are not waited for. From then on commands return verbs.ErrClosed; Statistics still works. Closing
// again does nothing. A card that has failed must be closed too.
func (card *Card) Close() error {
	card.quitIDs()
	card.manager.Flush()
	sessions, first := card.end()
	if !first {
		<-card.life.over
		return nil
	}
	defer close(card.life.over)
	card.host.Interrupt()
	for _, s := range sessions {
		s.cm.Shut()
	}
	for _, s := range sessions {
		s.cm.Wait()
		s.life.work.Wait()
	}
	card.life.work.Wait()
	card.settle(sessions)
	card.paths.Close()
	for _, s := range sessions {
		s.free()
	}
	card.mu.Lock()
	defer card.mu.Unlock()
	final, _ := card.readStatistics() // counters that cannot be read stay 0
	err := errors.Join(card.engine.Close(), card.leaveHost())
	final.Engine = card.engine.Counters()
	card.final = &final
	return err
}

// settle sends posted requests, for closeTimeout at most. It asks for neighbours that have not
// answered yet itself, since keepUp has ended.
func (card *Card) settle(sessions []*Session) {
	end := time.Now().Add(closeTimeout)
	settle := func() {
		for _, s := range sessions {
			s.entry.Engine().Settle(s.entry, time.Until(end))
		}
	}
	settle()
	for held := 1; time.Now().Before(end); time.Sleep(settlePause) {
		if card.engine.Do(func() { held = card.engine.Held() }); held == 0 {
			break
		}
		_ = card.paths.AskHops(false)
	}
	settle()
}

// settlePause is the time between two looks for neighbours that settle waits for.
const settlePause = 2 * time.Millisecond

// leaveHost closes the host, when the engine has closed its link.
func (card *Card) leaveHost() error {
	ids.LeavePorts(card.host.Namespace())
	return card.host.Close()
}

// quitIDs ends what the connection manager does for ids, so that their peers are told.
func (card *Card) quitIDs() {
	var sessions []*Session
	card.locked(func() { sessions = slices.Clone(card.sessions) })
	for _, s := range sessions {
		s.cm.Quit()
	}
}

// end refuses further commands of all sessions, and gives the sessions that were open; first is
// false if it was called before.
func (card *Card) end() (sessions []*Session, first bool) {
	card.mu.Lock()
	defer card.mu.Unlock()
	if !card.life.stop() {
		return nil, false
	}
	card.life.release()
	for _, s := range card.allSessions() {
		if s.end() {
			sessions = append(sessions, s)
		}
	}
	return sessions, true
}

// allSessions are those of programs and the manager's. The caller holds mu.
func (card *Card) allSessions() []*Session {
	all := slices.Clone(card.sessions)
	if card.own != nil {
		all = append(all, card.own)
	}
	return all
}

// flushTimeout bounds the wait for a session's requests to be flushed. 16384 queue pairs with full
// queues take some seconds, and a program that keeps posting would never end it.
const flushTimeout = 10 * time.Second

// fail ends a card that has lost its interface, as hardware would. Commands fail from now on. When a
// session's outstanding requests are flushed, it gets the event, and those that wait are woken. The
// program still has to call Close.
func (card *Card) fail(cause error) {
	var flushing sync.WaitGroup
	for _, s := range card.startFailing(cause) {
		flushing.Go(s.sayFatal)
	}
	flushing.Wait()
}

// startFailing changes all queue pairs to ERR, and gives the sessions; none if the card has failed
// already, or is closed.
func (card *Card) startFailing(cause error) []*Session {
	card.mu.Lock()
	defer card.mu.Unlock()
	if !card.life.fail(fmt.Errorf("%w: %w", verbs.ErrDeviceFatal, cause)) {
		return nil
	}
	card.log.Error("device has failed", "device", card.Name(), "error", cause)
	card.life.release()
	down := *card.port()
	down.Up = false
	card.state.Store(&down)
	all := card.allSessions()
	card.engine.Do(func() {
		card.engine.SetLink(false)
		for _, s := range all {
			s.flushAll()
		}
	})
	return all
}

// tell reports an event to all sessions. The caller holds mu.
func (card *Card) tell(report provider.EventReport) {
	for _, s := range card.sessions {
		s.events.put(report)
	}
}

// Name is the interface's, which changes when the interface is renamed.
func (card *Card) Name() string { return *card.name.Load() }
