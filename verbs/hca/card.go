package hca

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
)

// Card is what programs share: one port, on one interface. It is the session of the program that
// opened it, and so a verbs.Provider; NewSession makes further ones, for parts of a program that
// are to know nothing of each other.
type Card struct {
	*Session // of the program that opened it

	name     string
	host     surroundings
	steering steering
	engine   *datapath.Engine
	link     link.Link
	inline   bool
	maxMTU   wire.MTU // what the link can carry
	askedMTU wire.MTU // what the caller wants, 0 for all that fits
	vlan     uint16
	log      *slog.Logger

	stop       chan struct{}  // closed by Close, at its beginning
	closed     chan struct{}  // closed by Close, at its end
	done       chan struct{}  // closed by Close, or when the card has failed
	failure    error          // why it has failed; written before done is closed
	background sync.WaitGroup // the goroutines that follow the host
	closing    sync.WaitGroup // sessions that are closed by themselves

	changes pendingChanges
	refused chan struct{} // of capacity 1: the interface dropped what was to be sent
	tooBig  tooBig
	lagging atomic.Bool // the last look at the host failed

	// asking is held for each question to the host, and until its answer is acted on.
	asking      sync.Mutex
	paths       map[pair]*path
	hops        map[netip.Addr]*hop
	lingering   int  // paths without users; under mu too
	freeing     bool // freeIdle is to run; as above
	unreachable int  // paths that have users, and no route; as above

	mu        sync.Mutex
	status    portStatus
	activeMTU wire.MTU
	gids      gidTable
	sessions  []*Session
	byPlace   map[wire.QPN]*qp
	numbers   qpNumbers
	groups    *groups
	final     *Statistics // when the card was closed
}

// parts is what a card is put together from.
type parts struct {
	name     string
	host     surroundings
	steering steering
	link     link.Link
	maxMTU   wire.MTU
	vlan     uint16
}

// newCard takes the parts over, also when it fails, and starts the card.
func newCard(p parts, o options) (*Card, error) {
	card := &Card{
		name: p.name, host: p.host, steering: p.steering, link: p.link, inline: o.inline,
		maxMTU: p.maxMTU, askedMTU: o.mtu, vlan: p.vlan, log: o.log,
		stop: make(chan struct{}), done: make(chan struct{}), closed: make(chan struct{}),
		changes: pendingChanges{ready: make(chan struct{}, 1)}, refused: make(chan struct{}, 1),
		paths: map[pair]*path{}, hops: map[netip.Addr]*hop{}, gids: newGIDTable(),
		byPlace: map[wire.QPN]*qp{}, numbers: newQPNumbers(), groups: mcast.NewTable[*datapath.QP](groupLimits),
	}
	engine, err := datapath.New(datapath.Config{
		Link: p.link, MTU: p.maxMTU, VLAN: p.vlan, Worker: datapath.WorkerConfig{Spin: o.spin},
		NoteRefused: card.noteRefused,
	})
	if err != nil {
		return nil, errors.Join(err, p.link.Close(), p.host.close())
	}
	card.engine = engine
	if card.Session, err = card.NewSession(SessionConfig{}); err == nil {
		err = card.firstLook()
	}
	if err != nil {
		return nil, errors.Join(err, card.Close())
	}
	if o.worker {
		engine.Start()
	}
	for _, run := range []func(){card.keepUp, card.watch, func() { card.host.follow(&card.changes) }, func() { card.host.listen(card.noteTooBig) }} {
		card.background.Go(run)
	}
	return card, nil
}

// firstLook fails where the interface could never work as it is.
func (card *Card) firstLook() error {
	first, err := card.updatePort()
	if err != nil {
		return err
	}
	if first.unsteered != nil {
		card.log.Error("not all addresses can be used", "device", card.name, "error", first.unsteered)
	}
	_, tooSmall := fittingMTU(card.name, card.status.mtu, card.maxMTU)
	return tooSmall
}

// closePatience is how long Close waits for a link that does not take what was posted.
const closePatience = time.Second

// Close stops the card and frees everything that it holds, for all its sessions. What has been
// posted is sent first: that ends at once where nothing waits, or nothing can move (the link is
// down, the queue pair in SQD), and after a second where the link does not take it. Commands give
// verbs.ErrClosed from now on, but Statistics. Closing again does nothing. A card that has failed
// is closed like any other.
func (card *Card) Close() error {
	sessions, first := card.end()
	if !first {
		<-card.closed
		return nil
	}
	defer close(card.closed)
	card.host.interrupt()
	card.background.Wait()
	for _, s := range sessions {
		s.commands.Wait()
	}
	card.closing.Wait()
	card.settle(sessions)
	card.abandonPaths()
	for _, s := range sessions {
		s.free()
	}
	card.mu.Lock()
	defer card.mu.Unlock()
	final, _ := card.readStatistics() // what cannot be read stays 0
	err := errors.Join(card.engine.Close(), card.host.close())
	final.Engine = card.engine.Counters()
	card.final = &final
	return err
}

// end lets no more commands in, of any session, and gives the sessions that were open; false if
// that was done before.
func (card *Card) end() (sessions []*Session, first bool) {
	card.mu.Lock()
	defer card.mu.Unlock()
	if isClosed(card.stop) {
		return nil, false
	}
	close(card.stop)
	if !isClosed(card.done) {
		close(card.done)
	}
	for _, s := range card.sessions {
		if s.end() {
			sessions = append(sessions, s)
		}
	}
	return sessions, true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ended says why the card is gone, nil while it is there.
func (card *Card) ended() error {
	switch {
	case isClosed(card.stop):
		return verbs.ErrClosed
	case isClosed(card.done):
		return card.failure
	}
	return nil
}

// flushPatience bounds the wait for a session's requests to be flushed: 16384 queue pairs with
// full queues take some seconds, and a program that posts on and on never ends.
const flushPatience = 10 * time.Second

// fail ends a card that has lost its interface, as hardware would end: commands fail from now on,
// what is outstanding is flushed, and then each program is told and woken. Only Close is left to do.
func (card *Card) fail(cause error) {
	var flushing sync.WaitGroup
	for _, s := range card.startFailing(cause) {
		flushing.Go(func() {
			card.engine.Settle(s.entry, flushPatience)
			card.mu.Lock()
			defer card.mu.Unlock()
			s.events.put(verbs.EventReport{Type: verbs.EventDeviceFatal})
			s.lose()
		})
	}
	flushing.Wait()
}

// startFailing moves all queue pairs to ERR, and gives the sessions; none if the card has failed
// already, or is closed.
func (card *Card) startFailing(cause error) []*Session {
	card.mu.Lock()
	defer card.mu.Unlock()
	if card.ended() != nil {
		return nil
	}
	card.log.Error("device has failed", "device", card.name, "error", cause)
	card.failure = fmt.Errorf("%w: %w", verbs.ErrDeviceFatal, cause)
	close(card.done)
	card.status.up = false
	card.engine.Do(func() {
		card.engine.SetLink(false)
		for _, s := range card.sessions {
			s.flushAll()
		}
	})
	return slices.Clone(card.sessions)
}

// tell makes an event of what concerns all programs. The caller holds mu.
func (card *Card) tell(report verbs.EventReport) {
	for _, s := range card.sessions {
		s.events.put(report)
	}
}

// Name is the interface's.
func (card *Card) Name() string { return card.name }
