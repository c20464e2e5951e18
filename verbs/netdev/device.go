// SPDX-License-Identifier: Apache-2.0

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

	// qkeyBase and the id are a network's Q_Key: the card drops packets of other networks.
	qkeyBase = 0x0b1b0000
)

// Device is an interface whose IP packets are carried by a card (struct rdma_netdev). Its methods are safe for
// concurrent use, except SetID and Init.
type Device struct {
	ClientPriv any            // for the program's own use: clnt_priv
	HCA        *verbs.Context // owned by the program; Close leaves it open
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
	hops       map[netip.Addr]netip.Addr // of destinations outside the interface's networks
	connecting int                       // goroutines that create an address handle
}

// Alloc creates a device, with an interface that is not started yet: a TUN in the calling thread's network namespace,
// whose name may contain a %d for the first free number (alloc_rdma_netdev). It needs CAP_NET_ADMIN, unless
// Options.Interface is set. Call Init next, and Close to free it.
func Alloc(c *verbs.Context, portNum uint8, name string, o Options) (*Device, error) {
	if c == nil {
		return nil, fmt.Errorf("alloc %s: %w: the verbs.Context is nil", name, verbs.ErrInvalid)
	}
	if portNum != port {
		return nil, fmt.Errorf("alloc %s: %w: port %d; the only port is 1", name, verbs.ErrInvalid, portNum)
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

// Name returns the interface's name.
func (d *Device) Name() string { return d.iface.Name() }

// SetID sets the network id, 0 to 65535, before Init (set_id): devices receive only packets of their own network.
// verbs.ErrBusy after Init.
func (d *Device) SetID(id int) error {
	switch {
	case d.endpoint != nil:
		return fmt.Errorf("set id of %s: %w: call it before Init", d.Name(), verbs.ErrBusy)
	case id < 0 || id > 0xffff:
		return fmt.Errorf("set id of %s: %w: %d; valid are 0 to 65535", d.Name(), verbs.ErrInvalid, id)
	}
	d.id = uint16(id)
	return nil
}

// QKey returns the network's Q_Key, which all its queue pairs use.
func (d *Device) QKey() verbs.QKey { return qkeyBase | verbs.QKey(d.id) }

// Group returns the network's group.
func (d *Device) Group() netip.Addr { return d.group.IP() }

// Init creates the queue pair, joins the network's group, and sets the interface up (initialize_rdma_netdev).
func (d *Device) Init() error {
	if d.endpoint != nil {
		return fmt.Errorf("init %s: %w: it is already initialised", d.Name(), verbs.ErrBusy)
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
		return fmt.Errorf("%w: MTU %d exceeds this port's maximum of %d", verbs.ErrInvalid, d.mtu, most)
	}
	if err := d.iface.Start(d.mtu); err != nil {
		return err
	}
	return d.lookAtOwn() // otherwise the first packets would have no source address for queries
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

// pieceLen returns the maximum bytes of a packet in one datagram.
func (d *Device) pieceLen() int { return d.endpoint.MaxMessage() - headerLen }

func (d *Device) wantedMTU() int {
	if d.options.MTU != 0 {
		return d.options.MTU
	}
	return max(d.pieceLen(), ipv6MTU)
}

// MTU returns the interface's MTU in bytes.
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
