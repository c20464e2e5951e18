package hca

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Device is a card: one port, on one interface. It is a verbs.Provider for the
// program that it is embedded in.
type Device struct {
	name     string
	host     surroundings
	steering steering
	engine   *datapath.Engine
	link     link.Link
	doorbell *ring.Doorbell
	inline   bool
	maxMTU   wire.MTU // what the link can carry
	askedMTU wire.MTU // what the caller wants, 0 for all that fits
	vlan     uint16
	log      *slog.Logger

	stop    chan struct{}  // closed by Close
	done    chan struct{}  // closed by Close, or when the device has failed
	failure error          // why it has failed; written before done is closed
	others  sync.WaitGroup // the follower, and commands that wait for a neighbour
	events  events

	news    news
	refused chan struct{} // of capacity 1: the interface dropped what was to be sent
	tooBig  tooBig
	claimed atomic.Bool // by a Context
	lagging atomic.Bool // the last look at the host failed

	// asking is held for each question to the host, and until its answer is acted on.
	asking      sync.Mutex
	paths       map[pair]*path
	hops        map[netip.Addr]*hop
	lingering   int  // paths without users; under mu too
	freeing     bool // freeIdle is to run; as above
	unreachable int  // paths that have users, and no route; as above

	mu          sync.Mutex
	status      portStatus
	activeMTU   wire.MTU
	gids        gidTable
	pds         table[pd]
	cqs         table[cq]
	mrs         table[mr]
	qps         table[qp]
	ahs         table[ah]
	byPlace     map[wire.QPN]*qp
	groups      *groups
	memberships table[joined]
	byDoorbell  map[uint32]*qp
	numbers     qpNumbers
	lastPD      datapath.PD
	final       *Statistics // when the device was closed
}

// parts is what a device is put together from.
type parts struct {
	name     string
	host     surroundings
	steering steering
	link     link.Link
	maxMTU   wire.MTU
	vlan     uint16
}

// newDevice takes the parts over, also when it fails, and starts the device.
func newDevice(p parts, o options) (*Device, error) {
	d := &Device{
		name: p.name, host: p.host, steering: p.steering, link: p.link, inline: o.inline,
		maxMTU: p.maxMTU, askedMTU: o.mtu, vlan: p.vlan, log: o.log,
		doorbell: ring.NewDoorbell(ring.Alloc(ring.DoorbellSize)),
		stop:     make(chan struct{}), done: make(chan struct{}), byPlace: map[wire.QPN]*qp{}, byDoorbell: map[uint32]*qp{},
		paths: map[pair]*path{}, hops: map[netip.Addr]*hop{}, gids: newGIDTable(), news: news{ready: make(chan struct{}, 1)}, refused: make(chan struct{}, 1),
		memberships: table[joined]{noun: "membership", limit: maxMemberships},
		groups:      mcast.NewTable[*datapath.QP](groupLimits),
		pds:         table[pd]{noun: "PD", limit: maxPD}, cqs: table[cq]{noun: "CQ", limit: maxCQ},
		mrs: table[mr]{noun: "MR", limit: maxMR}, qps: table[qp]{noun: "QP", limit: maxQP},
		ahs: table[ah]{noun: "AH", limit: maxAH}, numbers: newQPNumbers(),
	}
	d.events.init()
	engine, err := datapath.New(datapath.Config{
		Link: p.link, Doorbell: d.doorbell, MTU: p.maxMTU, VLAN: p.vlan, Worker: datapath.WorkerConfig{Spin: o.spin},
		NoteRefused: d.noteRefused,
	})
	if err != nil {
		return nil, errors.Join(err, p.link.Close(), p.host.close())
	}
	d.engine = engine
	if err := d.firstLook(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if o.worker {
		engine.Start()
	}
	for _, run := range []func(){d.keepUp, d.watch, func() { d.host.follow(&d.news) }, func() { d.host.listen(d.noteTooBig) }} {
		d.others.Go(run)
	}
	return d, nil
}

// firstLook fails where the interface could never work as it is.
func (d *Device) firstLook() error {
	first, err := d.updatePort()
	if err != nil {
		return err
	}
	if first.unsteered != nil {
		d.log.Error("not all addresses can be used", "device", d.name, "error", first.unsteered)
	}
	_, tooSmall := fittingMTU(d.name, d.status.mtu, d.maxMTU)
	return tooSmall
}

// closePatience is how long Close waits for a link that does not take what was posted.
const closePatience = time.Second

// Close stops the device and frees everything that it holds. What has been posted is sent
// first: that ends at once where nothing waits, or nothing can move (the link is down, the queue pair
// in SQD), and after a second where the link does not take it. Whatever programs
// made on it is gone; commands give verbs.ErrClosed from now on, but Statistics. Closing again
// does nothing. A device that has failed is closed like any other.
func (d *Device) Close() error {
	if !d.end() {
		return nil
	}
	d.host.interrupt()
	d.others.Wait()
	d.settle()
	d.abandonPaths()
	d.mu.Lock()
	defer d.mu.Unlock()
	final, _ := d.readStatistics() // what cannot be read stays 0
	err := errors.Join(d.engine.Close(), d.host.close())
	final.Engine = d.engine.Counters()
	d.final = &final
	return err
}

// end lets no more commands in; false if that was done before.
func (d *Device) end() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if isClosed(d.stop) {
		return false
	}
	close(d.stop)
	if !isClosed(d.done) {
		close(d.done)
	}
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Done implements verbs.Provider.
func (d *Device) Done() <-chan struct{} { return d.done }

// Err implements verbs.Provider.
func (d *Device) Err() error {
	switch {
	case isClosed(d.stop):
		return verbs.ErrClosed
	case isClosed(d.done):
		return d.failure
	}
	return nil
}

// enter takes the device's lock for a command, unless the device is closed or has failed.
func (d *Device) enter() error {
	d.mu.Lock()
	err := d.Err()
	if err != nil {
		d.mu.Unlock()
	}
	return err
}

// enterToFree is enter for a command that gives something back, which a device that has
// failed takes as well.
func (d *Device) enterToFree() error {
	d.mu.Lock()
	if isClosed(d.stop) {
		d.mu.Unlock()
		return verbs.ErrClosed
	}
	return nil
}

// Claim implements verbs.Provider.
func (d *Device) Claim() error {
	if d.claimed.Swap(true) {
		return fmt.Errorf("%w: %s has a Context, and a card serves one", verbs.ErrBusy, d.name)
	}
	return nil
}

// Doorbell implements verbs.Provider.
func (d *Device) Doorbell() *ring.Doorbell { return d.doorbell }

// Wake implements verbs.Provider. The caller's thread does the work if it may.
func (d *Device) Wake() {
	if d.inline {
		d.engine.Kick()
	} else {
		d.engine.Wake()
	}
}

// Progress implements verbs.Progressor.
func (d *Device) Progress() bool { return d.inline && d.engine.Progress() }

// BeginWait implements verbs.Progressor.
func (d *Device) BeginWait() { d.engine.BeginWait() }

// EndWait implements verbs.Progressor.
func (d *Device) EndWait() { d.engine.EndWait() }

// Name is the interface's.
func (d *Device) Name() string { return d.name }

// privileged reports whether the caller may set a Q_Key with the high bit.
func (d *Device) privileged() bool {
	return hasCapability(unix.CAP_NET_RAW)
}
