// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// Domain contains the resources that several connections of a program share: a protection domain, so that the peers of
// all of them can access its regions, and optionally receives. A server with many clients uses one.
type Domain struct {
	verbs   *verbs.Context
	options DomainOptions
	pd      *verbs.PD
	srq     *verbs.SRQ
	mr      *verbs.MR           // memory of the receives
	recvs   *transport.Receives // nil: connections have their own

	mu      sync.Mutex
	users   int // number of users: the owner, connections and listeners
	closed  bool
	regions map[*Region]bool
	watcher *watcher // nil until the first connection id
}

// DomainOptions are the options of a domain.
type DomainOptions struct {
	// RecvDepth is the number of receive buffers that all connections share (an SRQ); 0 means that each connection has
	// its own.
	RecvDepth int
	// MaxMessage is the length of these buffers, in bytes (default 4096).
	MaxMessage int
}

// NewDomain creates a domain on a device.
func NewDomain(c *verbs.Context, o DomainOptions) (*Domain, error) {
	d, err := newDomain(c, o)
	if err != nil {
		return nil, fmt.Errorf("new domain: %w", err)
	}
	return d, nil
}

func newDomain(c *verbs.Context, o DomainOptions) (*Domain, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: no verbs.Context", verbs.ErrInvalid)
	}
	if o.RecvDepth < 0 || o.MaxMessage < 0 {
		return nil, fmt.Errorf("%w: a number in DomainOptions is negative", verbs.ErrInvalid)
	}
	o.MaxMessage = cmp.Or(o.MaxMessage, defaultMessage)
	d := &Domain{verbs: c, options: o, users: 1, regions: map[*Region]bool{}}
	if err := d.create(); err != nil {
		return nil, errors.Join(err, d.free())
	}
	return d, nil
}

func (d *Domain) create() (err error) {
	if d.pd, err = d.verbs.AllocPD(); err != nil || d.options.RecvDepth == 0 {
		return err
	}
	depth, stride := d.options.RecvDepth, transport.Lines(d.options.MaxMessage)
	if d.mr, err = d.pd.AllocMR(depth*stride, verbs.AccessLocalWrite); err != nil {
		return err
	}
	if d.srq, err = d.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: uint32(depth), MaxSGE: 1}); err != nil {
		return err
	}
	d.recvs = new(transport.Receives)
	return d.recvs.Start(d.mr, depth, stride, d.options.MaxMessage, d.srq.PostRecv)
}

// enter adds a user, which must call leave later.
func (d *Domain) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("%w: the domain", verbs.ErrObjectClosed)
	}
	d.users++
	return nil
}

// leave removes a user. The last one frees the domain.
func (d *Domain) leave() error {
	d.mu.Lock()
	d.users--
	last := d.users == 0
	d.closed = d.closed || last
	d.mu.Unlock()
	if !last {
		return nil
	}
	return d.free()
}

// Close frees the domain and its regions. It returns verbs.ErrBusy while a connection or a listener uses the domain.
// Closing again has no effect.
func (d *Domain) Close() error {
	if d == nil {
		return fmt.Errorf("close: %w", errNil)
	}
	d.mu.Lock()
	switch others := d.users - 1; {
	case d.closed:
		d.mu.Unlock()
		return nil
	case others > 0:
		d.mu.Unlock()
		return fmt.Errorf("close domain: %w: %d connections and listeners use it; close them first",
			verbs.ErrBusy, others)
	}
	d.closed = true
	d.mu.Unlock()
	return d.free()
}

func (d *Domain) free() (err error) {
	if d.watcher != nil {
		err = d.watcher.close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for region := range d.regions {
		region.closed.Store(true)
		err = errors.Join(err, transport.Free(region.mr))
	}
	clear(d.regions)
	return errors.Join(err, transport.Free(d.srq), transport.Free(d.mr), transport.Free(d.pd))
}
