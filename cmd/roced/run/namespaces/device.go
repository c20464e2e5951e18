// SPDX-License-Identifier: Apache-2.0

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

// Device serves programs in other network namespaces.
type Device struct {
	config  config.Namespaces
	access  access
	options []hca.Option
	log     *slog.Logger
	users   sync.WaitGroup // of all cards

	mu     sync.Mutex
	cards  map[peer.Namespace]*card
	all    map[*card]struct{} // including failed cards that still have users
	opens  uint64             // number of cards opened
	gone   []hca.Counter      // sums of closed cards
	closed bool
}

// card is the card of one namespace.
type card struct {
	*hca.Card
	namespace peer.Namespace
	owner     uint32        // uid of the first user, against whose limit the card counts
	file      *os.File      // keeps the namespace alive
	opened    chan struct{} // closed when open succeeded or failed
	closed    chan struct{} // closed after the last user left and the card was closed
	err       error
	users     int // under Device.mu: sessions and callers waiting for one; 0 while closing
}

// New creates the device without a card. It returns verbs.ErrUnsupported if the kernel does not report the
// network namespace of a socket.
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

// Name returns the device name that programs use.
func (d *Device) Name() string { return d.config.Device }

// NewSession fails: sessions need a caller, so the server calls NewSessionOf.
func (d *Device) NewSession(hca.SessionConfig) (*hca.Session, error) {
	return nil, fmt.Errorf("%w: %s is only available to callers in another network namespace", verbs.ErrInvalid, d.Name())
}

// NewSessionOf opens a session on the card of the caller's namespace.
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

// QueryDeviceOf returns the attributes of the caller's device without opening a card.
func (d *Device) QueryDeviceOf(caller *peer.Caller) (attr verbs.DeviceAttr, err error) {
	if err := d.access.check(caller); err != nil {
		return attr, err
	}
	found, err := findInterface(caller.Path)
	return verbs.DeviceAttr{Name: d.Name(), NodeGUID: found.GUID, SysImageGUID: found.GUID}, err
}

// CardOf returns the card of the caller's namespace, or nil if none is open.
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

// Close waits until all cards are closed. No session may be created afterwards.
func (d *Device) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.users.Wait()
}

// enter adds a user to the card of the caller's namespace, and opens the card for the first user.
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

// add returns the card of a namespace or creates an entry for it; first means that the caller must open it. A
// failed card is replaced, and a closing one is awaited.
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

// keptParts is the divisor of the number of cards that are reserved for users without a card.
const keptParts = 8

// roomFor checks that another card may be opened. The caller holds mu.
func (d *Device) roomFor(caller *peer.Caller) error {
	all, own, kept := len(d.cards), 0, d.config.Cards/keptParts
	for _, other := range d.cards {
		if other.owner == caller.Owner {
			own++
		}
	}
	switch {
	case all >= d.config.Cards:
		return fmt.Errorf("%w: %d network namespaces have a card, the limit of namespaces.cards", verbs.ErrLimit, all)
	case own >= d.config.UserCards:
		return fmt.Errorf("%w: user %d has cards in %d network namespaces, the limit of namespaces.user_cards", verbs.ErrLimit, caller.Owner, own)
	case own > 0 && all >= d.config.Cards-kept:
		return fmt.Errorf("%w: %d network namespaces have a card, of which user %d has %d; the last %d of namespaces.cards are reserved for users without a card",
			verbs.ErrLimit, all, caller.Owner, own, kept)
	}
	return nil
}

// failed reports whether the card has failed, or could not be opened.
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
	log.Info("card opened in a network namespace", "interface", found.Name, "owner", on.owner)
	d.mu.Lock()
	d.opens++
	d.mu.Unlock()
	return opened, nil
}

// leave removes a user from a card and closes the card after the last.
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

// close closes a card without users. New users wait until it is closed.
func (d *Device) close(on *card) {
	if on.Card != nil {
		if err := on.Card.Close(); err != nil {
			d.log.Warn("closing the card of a network namespace failed", "namespace", on.namespace.Inode, "error", err)
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
