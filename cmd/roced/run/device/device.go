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
	changed func() // the state is another
	told    func(verbs.EventType)
	opened  func()
	nudge   chan struct{} // look again now

	mu    sync.Mutex
	card  *hca.Card // nil while there is none
	why   error     // why there is none
	opens uint64    // how often a card was opened
}

// Open opens the card of a device.
type Open func() (*hca.Card, error)

// New makes a device of an interface. changed is called, on any goroutine, when its state may have
// changed, and must not wait.
func New(c config.Device, stateDir string, log *slog.Logger, changed func()) *Device {
	open := func() (*hca.Card, error) { return hca.Open(c.Interface, options(c, stateDir, log)...) }
	return newDevice(c, open, log.With("device", c.Name), changed)
}

func newDevice(c config.Device, open Open, log *slog.Logger, changed func()) *Device {
	return &Device{config: c, open: open, log: log, changed: changed, told: func(verbs.EventType) {}, opened: func() {}, nudge: make(chan struct{}, 1), why: errNotYet}
}

// OnEvent has a function hear of the card's events, before Run. It must not wait.
func (d *Device) OnEvent(told func(verbs.EventType)) { d.told = told }

// OnOpen has a function hear that there is a card, before Run. It must not wait.
func (d *Device) OnOpen(opened func()) { d.opened = opened }

// Name is the one that programs ask for.
func (d *Device) Name() string { return d.config.Name }

// Interface is the name of the device's network interface.
func (d *Device) Interface() string { return d.config.Interface }

// Config is what the device was made with.
func (d *Device) Config() config.Device { return d.config }

// NewSession makes a session on the card. While there is none, verbs.ErrDeviceFatal says why.
func (d *Device) NewSession(c hca.SessionConfig) (*hca.Session, error) {
	card, err := d.theCard()
	if err != nil {
		return nil, err
	}
	return card.NewSession(c)
}

// Counters are the card's. While there is none they are an error; a card that is opened again begins
// at 0.
func (d *Device) Counters() ([]hca.Counter, error) {
	card, why := d.now()
	if card == nil {
		return nil, why
	}
	return card.Counters()
}

// Capture begins a capture of the card's packets. While there is no card, verbs.ErrDeviceFatal says why.
func (d *Device) Capture(f hca.CaptureFilter) (*hca.Capture, error) {
	card, err := d.theCard()
	if err != nil {
		return nil, err
	}
	return card.Capture(f)
}

// Do implements provider.Doer: the card answers. While the device has none, the error is verbs.ErrDeviceFatal with the
// reason.
func (d *Device) Do(ctx context.Context, code provider.Code, request, grant any) error {
	card, err := d.theCard()
	if err != nil {
		return err
	}
	return card.Do(ctx, code, request, grant)
}

// Opens is how often a card was opened.
func (d *Device) Opens() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opens
}

// theCard is the card; an error that is verbs.ErrDeviceFatal says why there is none.
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

// LinkChanged has a device that waits for its interface look again now. The caller knows that
// something about the interface has changed.
func (d *Device) LinkChanged() {
	if card, why := d.now(); card == nil && waitsForLink(why) {
		select {
		case d.nudge <- struct{}{}:
		default:
		}
	}
}

// NewOpen is a device with a card that is open already and that somebody else closes. It is not Run.
func NewOpen(c config.Device, card *hca.Card) *Device {
	d := newDevice(c, nil, slog.New(slog.DiscardHandler), func() {})
	d.set(card, nil)
	return d
}
