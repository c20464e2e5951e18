// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"log/slog"
	"sync"

	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/admin"
)

// Device is a device of the service. Run keeps its card open.
type Device struct {
	config  config.Device
	open    Open
	log     *slog.Logger
	changed func() // notifies of a state change
	notify  func(verbs.EventType)
	opened  func()
	nudge   chan struct{} // retry now

	mu    sync.Mutex
	card  *hca.Card // nil while closed
	why   error     // the reason why card is nil
	opens uint64    // number of cards opened
}

// Open opens the card of a device.
type Open func() (*hca.Card, error)

// New creates a device for an interface. changed is called on any goroutine when the state may have changed,
// and must not block.
func New(c config.Device, stateDir string, log *slog.Logger, changed func()) *Device {
	open := func() (*hca.Card, error) { return hca.Open(c.Interface, options(c, stateDir, log)...) }
	return newDevice(c, open, log.With("device", c.Name), changed)
}

func newDevice(c config.Device, open Open, log *slog.Logger, changed func()) *Device {
	return &Device{config: c, open: open, log: log, changed: changed, notify: func(verbs.EventType) {}, opened: func() {}, nudge: make(chan struct{}, 1), why: errNotYet}
}

// OnEvent sets the callback for events of the card. Call it before Run. The callback must not block.
func (d *Device) OnEvent(notify func(verbs.EventType)) { d.notify = notify }

// OnOpen sets the callback for an opened card. Call it before Run. The callback must not block.
func (d *Device) OnOpen(opened func()) { d.opened = opened }

// Name returns the device name that programs use.
func (d *Device) Name() string { return d.config.Name }

// Interface returns the name of the network interface.
func (d *Device) Interface() string { return d.config.Interface }

// Config returns the configuration of the device.
func (d *Device) Config() config.Device { return d.config }

// NewSession opens a session on the card. Without a card it returns verbs.ErrDeviceFatal with the cause.
func (d *Device) NewSession(c hca.SessionConfig) (*hca.Session, error) {
	card, err := d.theCard()
	if err != nil {
		return nil, err
	}
	return card.NewSession(c)
}

// Counters returns the counters of the card, which start at 0 whenever it is opened. Without a card it
// returns an error.
func (d *Device) Counters() ([]hca.Counter, error) {
	card, why := d.now()
	if card == nil {
		return nil, why
	}
	return card.Counters()
}

// Capture starts a capture of the card's packets. Without a card it returns verbs.ErrDeviceFatal with the
// cause.
func (d *Device) Capture(f hca.CaptureFilter) (*hca.Capture, error) {
	card, err := d.theCard()
	if err != nil {
		return nil, err
	}
	return card.Capture(f)
}

// Do implements provider.Doer with the card. Without a card it returns verbs.ErrDeviceFatal with the cause.
func (d *Device) Do(ctx context.Context, code provider.Code, request, grant any) error {
	card, err := d.theCard()
	if err != nil {
		return err
	}
	return card.Do(ctx, code, request, grant)
}

// Opens returns the number of cards opened so far.
func (d *Device) Opens() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opens
}

// theCard returns the card, or verbs.ErrDeviceFatal with the cause.
func (d *Device) theCard() (*hca.Card, error) {
	card, why := d.now()
	if card == nil {
		return nil, &admin.NoCardError{Device: d.config.Name, Cause: why}
	}
	return card, nil
}

func (d *Device) now() (card *hca.Card, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.card, d.why
}

func (d *Device) set(card *hca.Card, why error) {
	d.mu.Lock()
	d.card, d.why = card, why
	if card != nil {
		d.opens++
	}
	d.mu.Unlock()
	if card != nil {
		d.opened()
	}
	d.changed()
}

// LinkChanged makes a device that waits for its interface retry now. Call it when the interface has changed.
func (d *Device) LinkChanged() {
	if card, why := d.now(); card == nil && waitsForLink(why) {
		select {
		case d.nudge <- struct{}{}:
		default:
		}
	}
}

// NewOpen returns a device with an open card, which the caller closes. Do not call Run on it.
func NewOpen(c config.Device, card *hca.Card) *Device {
	d := newDevice(c, nil, slog.New(slog.DiscardHandler), func() {})
	d.set(card, nil)
	return d
}
