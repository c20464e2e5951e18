package namespaces

import (
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/server/peer"
)

// Device is the device of programs in other namespaces.
type Device struct {
	config  config.Namespaces
	access  access
	options []hca.Option
	log     *slog.Logger
	users   sync.WaitGroup // of all cards

	mu     sync.Mutex
	cards  map[peer.Namespace]*card
	all    map[*card]struct{} // with those that have failed, and still have users
	opens  uint64             // how often a card was opened
	gone   []hca.Counter      // sums of those of cards that are closed
	closed bool
}

// card is one of a namespace.
type card struct {
	*hca.Card
	namespace peer.Namespace
	owner     uint32        // who was first: it counts as the owner's
	file      *os.File      // keeps the namespace
	opened    chan struct{} // closed when it is open, or cannot be
	closed    chan struct{} // closed when it is closed, after the last user
	err       error
	users     int // under Device.mu: sessions, and those that wait for it; 0 while it is closed
}

// New makes the device, without a card. verbs.ErrUnsupported if the kernel does not return the network namespaces of sockets.
func New(c config.Namespaces, log *slog.Logger, options ...hca.Option) (*Device, error) {
	if err := peer.CanTellCallers(); err != nil {
		return nil, err
	}
	access, err := newAccess(c)
	if err != nil {
		return nil, err
	}
	return &Device{config: c, access: access, options: options, log: log, cards: map[peer.Namespace]*card{}, all: map[*card]struct{}{}}, nil
}

// Name is the one that programs ask for.
func (d *Device) Name() string { return d.config.Device }

// NewSession is nobody's: the server asks for that of a caller.
func (d *Device) NewSession(hca.SessionConfig) (*hca.Session, error) {
	return nil, fmt.Errorf("%w: %s is of the caller's network namespace", verbs.ErrInvalid, d.Name())
}

// NewSessionOf makes a session on the card of the caller's namespace.
func (d *Device) NewSessionOf(caller *peer.Caller, c hca.SessionConfig) (*hca.Session, error) {
	if err := d.access.check(caller); err != nil {
		return nil, err
	}
	on, err := d.enter(caller)
	if err != nil {
		return nil, err
	}
	session, err := on.NewSession(c)
	if err != nil {
		d.leave(on)
		return nil, err
	}
	go func() {
		<-session.Done()
		d.leave(on)
	}()
	return session, nil
}

// QueryDeviceOf says what there is for a caller, without opening a card.
func (d *Device) QueryDeviceOf(caller *peer.Caller) (attr verbs.DeviceAttr, err error) {
	if err := d.access.check(caller); err != nil {
		return attr, err
	}
	found, err := findInterface(caller.Path)
	return verbs.DeviceAttr{Name: d.Name(), NodeGUID: found.GUID, SysImageGUID: found.GUID}, err
}

// CardOf is the card of the caller's namespace, nil if none is open.
func (d *Device) CardOf(caller *peer.Caller) *hca.Card {
	d.mu.Lock()
	on := d.cards[caller.Namespace]
	d.mu.Unlock()
	if on == nil {
		return nil
	}
	<-on.opened
	return on.Card
}

// Close closes all cards. No session may follow.
func (d *Device) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.users.Wait()
}

// enter gives the card of the caller's namespace to one more user, and opens it for the first.
func (d *Device) enter(caller *peer.Caller) (*card, error) {
	on, first, err := d.add(caller)
	if err != nil {
		return nil, err
	}
	if first {
		on.Card, on.err = d.open(on)
		close(on.opened)
	}
	<-on.opened
	if on.err != nil {
		d.leave(on)
		return nil, on.err
	}
	return on, nil
}

// add finds the card of a namespace, or makes a place for it: first says that the caller is to open it. A card that
// has failed is nobody's any more, and one that is closed is waited for.
func (d *Device) add(caller *peer.Caller) (on *card, first bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for last := d.cards[caller.Namespace]; last != nil && last.users == 0; last = d.cards[caller.Namespace] {
		d.mu.Unlock()
		<-last.closed
		d.mu.Lock()
	}
	if d.closed {
		return nil, false, fmt.Errorf("open %s: %w", d.Name(), verbs.ErrClosed)
	}
	if found := d.cards[caller.Namespace]; found != nil && !found.failed() {
		found.users++
		d.users.Add(1)
		return found, false, nil
	}
	if err := d.roomFor(caller); err != nil {
		return nil, false, err
	}
	file, err := os.Open(caller.Path)
	if err != nil {
		return nil, false, fmt.Errorf("%w: the caller's network namespace: %w", verbs.ErrHost, err)
	}
	on = &card{namespace: caller.Namespace, owner: caller.Owner, file: file, opened: make(chan struct{}), closed: make(chan struct{}), users: 1}
	d.cards[caller.Namespace] = on
	d.all[on] = struct{}{}
	d.users.Add(1)
	cli.MakeRoom(len(d.cards))
	return on, true, nil
}

// keptParts: an eighth of all cards is reserved for users without one.
const keptParts = 8

// roomFor checks that one more card may be opened. The caller holds mu.
func (d *Device) roomFor(caller *peer.Caller) error {
	all, own, kept := len(d.cards), 0, d.config.Cards/keptParts
	for _, other := range d.cards {
		if other.owner == caller.Owner {
			own++
		}
	}
	switch {
	case all >= d.config.Cards:
		return fmt.Errorf("%w: %d network namespaces have a card, and namespaces.cards allows no more", verbs.ErrLimit, all)
	case own >= d.config.UserCards:
		return fmt.Errorf("%w: user %d has cards in %d network namespaces, and namespaces.user_cards allows no more", verbs.ErrLimit, caller.Owner, own)
	case own > 0 && all >= d.config.Cards-kept:
		return fmt.Errorf("%w: %d network namespaces have a card, user %d has %d of them, and the last %d of namespaces.cards are for users without one",
			verbs.ErrLimit, all, caller.Owner, own, kept)
	}
	return nil
}

// failed says whether it was open, and is not any more.
func (on *card) failed() bool {
	select {
	case <-on.opened:
	default:
		return false
	}
	if on.err != nil {
		return true
	}
	select {
	case <-on.Done():
		return true
	default:
		return false
	}
}

func (d *Device) open(on *card) (*hca.Card, error) {
	path := fmt.Sprintf("/proc/self/fd/%d", on.file.Fd())
	found, err := findInterface(path)
	if err != nil {
		return nil, err
	}
	log := d.log.With("device", d.Name(), "namespace", on.namespace.Inode)
	options := append([]hca.Option{hca.InNamespace(path), hca.WithLogger(log), hca.WithoutInline(), hca.WithNetwork(d.config.Network)}, d.options...)
	opened, err := hca.Open(found.Name, options...)
	if err != nil {
		return nil, err
	}
	log.Info("a card for a network namespace", "interface", found.Name, "owner", on.owner)
	d.mu.Lock()
	d.opens++
	d.mu.Unlock()
	return opened, nil
}

// leave takes a user from a card, and closes it after the last.
func (d *Device) leave(on *card) {
	defer d.users.Done()
	d.mu.Lock()
	on.users--
	last := on.users == 0
	d.mu.Unlock()
	if last {
		d.close(on)
	}
}

// close closes a card that has no users, and gets none while it is being closed.
func (d *Device) close(on *card) {
	if on.Card != nil {
		if err := on.Card.Close(); err != nil {
			d.log.Warn("the card of a network namespace did not close cleanly", "namespace", on.namespace.Inode, "error", err)
		}
	}
	_ = on.file.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cards[on.namespace] == on {
		delete(d.cards, on.namespace)
	}
	delete(d.all, on)
	if on.Card != nil {
		if final, err := on.Statistics(); err == nil {
			d.gone = hca.AddCounters(d.gone, final.All())
		}
	}
	close(on.closed)
}
