package netdev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

const (
	port = 1 // a device has one

	// qkeyBase and the id are a network's Q_Key: the card drops what comes from another network.
	qkeyBase = 0x0b1b0000
)

// Device is an interface whose IP packets travel over a card (struct rdma_netdev). Its methods are safe for
// concurrent use, but SetID and Init.
type Device struct {
	ClientPriv any            // the program's own: clnt_priv
	HCA        *verbs.Context // the program's; Close leaves it open
	PortNum    uint8

	options  Options
	iface    Interface
	id       uint16
	group    ud.Addr
	endpoint *ud.Endpoint // nil before Init
	begin    time.Time
	mtu      int // of the interface
	counters counters
	outward  outward

	mu         sync.Mutex
	own        own
	neighbours neighbours
	hops       map[netip.Addr]netip.Addr // of destinations that are in none of our networks
	connecting int                       // goroutines that make an address handle
}

// Alloc makes a device, with an interface that carries nothing yet: a TUN in the calling thread's network
// namespace, whose name may have a %d for the first free number (alloc_rdma_netdev). It needs CAP_NET_ADMIN, unless
// Options.Interface is given. Call Init, and Close to free it.
func Alloc(c *verbs.Context, portNum uint8, name string, o Options) (*Device, error) {
	if c == nil {
		return nil, fmt.Errorf("alloc %s: %w: no verbs.Context", name, verbs.ErrInvalid)
	}
	if portNum != port {
		return nil, fmt.Errorf("alloc %s: %w: port %d; a device has port 1 only", name, verbs.ErrInvalid, portNum)
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("alloc %s: %w", name, err)
	}
	d := &Device{HCA: c, PortNum: portNum, options: o, iface: o.Interface, begin: time.Now()}
	if d.iface == nil {
		t, err := openTUN(name, o.Addresses)
		if err != nil {
			return nil, fmt.Errorf("alloc %s: %w", name, err)
		}
		d.iface = t
	}
	if d.options.MaxNeighbours == 0 {
		d.options.MaxNeighbours = defaultMax
	}
	d.own.announce = map[netip.Addr]int{}
	d.hops = map[netip.Addr]netip.Addr{}
	d.neighbours = neighbours{all: map[netip.Addr]*neighbour{}, limit: d.options.MaxNeighbours}
	return d, nil
}

// Name is the interface's.
func (d *Device) Name() string { return d.iface.Name() }

// SetID chooses the network, 0 to 65535, before Init (set_id): devices hear those of the same id only. verbs.ErrBusy
// after Init.
func (d *Device) SetID(id int) error {
	switch {
	case d.endpoint != nil:
		return fmt.Errorf("set id of %s: %w: call it before Init", d.Name(), verbs.ErrBusy)
	case id < 0 || id > 0xffff:
		return fmt.Errorf("set id of %s: %w: %d; 0 to 65535", d.Name(), verbs.ErrInvalid, id)
	}
	d.id = uint16(id)
	return nil
}

// QKey is the network's Q_Key, which all its queue pairs have.
func (d *Device) QKey() verbs.QKey { return qkeyBase | verbs.QKey(d.id) }

// Group is the network's group.
func (d *Device) Group() netip.Addr { return d.group.IP() }

// Init makes the queue pair, joins the network's group, and sets the interface up (initialize_rdma_netdev).
func (d *Device) Init() error {
	if d.endpoint != nil {
		return fmt.Errorf("init %s: %w: it is initialised", d.Name(), verbs.ErrBusy)
	}
	if err := d.init(); err != nil {
		if d.endpoint != nil {
			err = errors.Join(err, d.endpoint.Close())
			d.endpoint = nil
		}
		return fmt.Errorf("init %s: %w", d.Name(), err)
	}
	return nil
}

func (d *Device) init() (err error) {
	group := d.options.Group
	if !group.IsValid() {
		if group, err = groupOf(d.HCA, d.id); err != nil {
			return err
		}
	}
	d.group = d.groupAddr(verbs.GIDFromAddr(group))
	attr, err := d.HCA.QueryPort(port)
	if err != nil {
		return err
	}
	d.endpoint, err = ud.New(d.HCA, ud.Options{
		QKey: d.QKey(), Source: d.options.Source, NoLoopback: true, MaxMessage: attr.MaxMTU.Bytes(),
		RecvDepth: orDefault(d.options.RecvDepth, 1024), SendDepth: orDefault(d.options.SendDepth, 512),
		MaxHandles: d.options.MaxNeighbours + 64,
	})
	if err != nil {
		return err
	}
	if err := d.AttachMcast(d.group.GID, 0, true, d.QKey()); err != nil {
		return err
	}
	d.mtu = d.wantedMTU()
	if most := d.pieceLen() * maxPieces; d.mtu > most {
		return fmt.Errorf("%w: MTU %d: at most %d on this port", verbs.ErrInvalid, d.mtu, most)
	}
	if err := d.iface.Start(d.mtu); err != nil {
		return err
	}
	return d.lookAtOwn() // or the first packets would find no address to ask from
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

func (d *Device) groupAddr(gid verbs.GID) ud.Addr {
	return ud.Addr{GID: gid, QPN: verbs.MulticastQPN, QKey: d.QKey()}
}

// pieceLen is how many bytes of a packet a datagram takes now.
func (d *Device) pieceLen() int { return d.endpoint.MaxMessage() - headerLen }

func (d *Device) wantedMTU() int {
	if d.options.MTU != 0 {
		return d.options.MTU
	}
	return max(d.pieceLen(), ipv6MTU)
}

// MTU is the interface's, in bytes.
func (d *Device) MTU() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mtu
}

// Run carries packets until ctx is done, or the device is closed or fails. It is called once, after Init.
func (d *Device) Run(ctx context.Context) error {
	if d.endpoint == nil {
		return fmt.Errorf("run: %w: call Init first", verbs.ErrState)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, part := range []func(context.Context) error{d.runOutward, d.runInward, d.runClock} {
		all.Go(func() { cancel(part(ctx)) })
	}
	<-ctx.Done()
	err := context.Cause(ctx)
	err = errors.Join(err, d.iface.Close()) // ends ReadPackets
	all.Wait()
	for _, normal := range []error{context.Canceled, context.DeadlineExceeded, os.ErrClosed, net.ErrClosed} {
		if errors.Is(err, normal) {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", d.Name(), err)
}

// Close ends Run, leaves all groups and frees the queue pair and the interface.
func (d *Device) Close() error {
	err := d.iface.Close()
	if d.endpoint != nil {
		err = errors.Join(err, d.endpoint.Close())
	}
	return err
}

func (d *Device) now() time.Duration { return time.Since(d.begin) }
