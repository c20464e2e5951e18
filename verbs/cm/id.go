// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// ID is a connection id (rdma_cm_id).
type ID struct {
	// Context is for the program's own use. An id of a request has its listener's.
	Context any
	bound   atomic.Bool // to a device, as far as the program knows; for removal

	mu sync.Mutex
	spread
	asked  bool // it represents an unanswered request
	qp     *verbs.QP
	srq    bool // the queue pair has an SRQ
	joins  joins
	joined uint64 // number of joins so far

	minRNRTimer uint8 // of the queue pair, or of those of requests
}

// errNil is the error for a nil id, endpoint or channel, often after an unchecked error.
var errNil = fmt.Errorf("%w: the id, endpoint or channel is nil", verbs.ErrInvalid)

// spread is the state of an id on its devices. It is protected by ID.mu, except for constant fields.
type spread struct {
	id     *ID
	space  PortSpace
	kind   verbs.QPType // of its queue pair; 0 for that of the port space
	number uint64       // random: lets cards detect that the same port on several devices belongs to one id

	channel *EventChannel
	parts   []part // one for each device that the id may be on; empty when it is closed
	options []option
	settled bool // the device in parts is final

	everywhere netip.AddrPort // address of an id bound to all addresses, as each part is
	backlog    *int           // of an id that listens there
}

// part is an id on a device.
type part struct {
	*device
	handle provider.Handle
}

// option is an option that was set, in case the id must be created again.
type option struct {
	option ib.IDOption
	value  uint32
}

func (c *EventChannel) newID(space PortSpace, kind verbs.QPType, context any) (*ID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("%w: the event channel", verbs.ErrObjectClosed)
	}
	i := &ID{Context: context, joins: joins{}, minRNRTimer: defaultRNRTimer}
	i.spread = spread{id: i, space: space, kind: kind, channel: c, number: rand.Uint64()}
	if err := i.open(); err != nil {
		return nil, err
	}
	c.ids.Add(1)
	return i, nil
}

// child returns the id of a request on the device.
func (d *device) child(listener *ID, handle provider.Handle) *ID {
	if listener == nil { // closed meanwhile; the card rejects the request
		_ = provider.Exec(d.provider, provider.DestroyID, provider.DestroyIDRequest{ID: handle})
		return nil
	}
	i := &ID{Context: listener.Context, joins: joins{}, asked: true, minRNRTimer: listener.rnrTimer()}
	i.spread = spread{id: i, space: listener.space, kind: listener.kind, channel: listener.channel, parts: []part{{d, handle}}, settled: true}
	i.bound.Store(true)
	d.enter(handle, i)
	i.channel.ids.Add(1)
	return i
}

// one returns the id's part on its device. The caller holds mu.
func (s *spread) one() (part, error) {
	switch len(s.parts) {
	case 0:
		return part{}, fmt.Errorf("%w: the id", verbs.ErrObjectClosed)
	case 1:
		return s.parts[0], nil
	}
	return part{}, fmt.Errorf("%w: the id is not bound to one of its %d devices; bind it to an address, or resolve one", verbs.ErrInvalid, len(s.parts))
}

// do executes a command on the id's device.
func (i *ID) do(what string, command func(part) error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	p, err := i.one()
	if err == nil {
		err = command(p)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// SetServiceType sets the type of service (rdma_set_service_type): the traffic class of packets to destinations that
// are resolved or joined from then on.
func (i *ID) SetServiceType(tos uint8) error {
	if i == nil {
		return fmt.Errorf("set service type: %w", errNil)
	}
	return i.set("set service type", ib.IDOptionTOS, uint32(tos))
}

// SetReuseAddr permits several ids of a user to bind to one address and port, if all permit it (rdma_set_reuseaddr). An
// id can listen only if it is the only one, and then no other can bind there. verbs.ErrInvalid when the id is bound.
func (i *ID) SetReuseAddr(reuse bool) error {
	if i == nil {
		return fmt.Errorf("set the reuse of addresses: %w", errNil)
	}
	return i.set("set the reuse of addresses", ib.IDOptionReuseAddr, number(reuse))
}

// SetAFOnly restricts an id to the IP version of its listening address (rdma_set_afonly); otherwise an id at :: accepts
// requests of both. An id at 0.0.0.0 is restricted by default; SetAFOnly(false) removes the restriction.
// verbs.ErrInvalid when it listens.
func (i *ID) SetAFOnly(only bool) error {
	if i == nil {
		return fmt.Errorf("set the address family: %w", errNil)
	}
	return i.set("set the address family", ib.IDOptionAFOnly, number(only))
}

func number(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// LocalAddr returns the id's own address and port (rdma_get_local_addr, rdma_get_src_port); zero if it has none yet.
func (i *ID) LocalAddr() (netip.AddrPort, error) {
	if i == nil {
		return netip.AddrPort{}, fmt.Errorf("get the local address: %w", errNil)
	}
	grant, err := i.query("get the local address")
	return grant.Local, err
}

// PeerAddr returns the address and port of the destination (rdma_get_peer_addr, rdma_get_dst_port); zero until it is
// resolved.
func (i *ID) PeerAddr() (netip.AddrPort, error) {
	if i == nil {
		return netip.AddrPort{}, fmt.Errorf("get the peer's address: %w", errNil)
	}
	grant, err := i.query("get the peer's address")
	return grant.Remote, err
}

// Route returns the attributes of the address handle to the destination (the path records of rdma_route); zero until it
// is resolved.
func (i *ID) Route() (verbs.AHAttr, error) {
	if i == nil {
		return verbs.AHAttr{}, fmt.Errorf("get the route: %w", errNil)
	}
	grant, err := i.query("get the route")
	return grant.AH, err
}

// PortSpace returns the id's port space.
func (i *ID) PortSpace() PortSpace {
	if i == nil {
		return 0
	}
	return i.space
}

// query queries the first working device; while the id is on several devices, all return the same.
func (i *ID) query(what string) (grant provider.QueryIDGrant, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.parts) == 0 {
		return grant, fmt.Errorf("%s: %w: the id", what, verbs.ErrObjectClosed)
	}
	for _, p := range i.parts {
		if grant, err = provider.Do(p.provider, provider.QueryID, provider.QueryIDRequest{ID: p.handle}); err == nil || !isGone(err) {
			break
		}
	}
	if err != nil {
		return grant, fmt.Errorf("%s: %w", what, err)
	}
	return grant, nil
}

// Channel returns the channel of the id's events (rdma_cm_id.channel). The channel of an id with a handler is for
// AddDevice only.
func (i *ID) Channel() *EventChannel {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.channel
}

// Device returns the device that the id is bound to (rdma_cm_id.verbs); nil if it is not bound, or bound to all
// addresses.
func (i *ID) Device() (*verbs.Context, error) {
	if i == nil {
		return nil, fmt.Errorf("get the device: %w", errNil)
	}
	grant, err := i.query("get the device")
	if err != nil || !grant.OnDevice {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	p, err := i.one()
	if err != nil {
		return nil, err
	}
	return p.ctx, nil
}

// Close destroys the id (rdma_destroy_id). It cancels operations in progress, leaves the id's groups, rejects the id's
// unanswered request, and drops its unread events. verbs.ErrBusy while it has a queue pair.
//
// Close waits for the id's handler. Therefore a handler must not call it for its own id, nor for the listening id: it
// returns an error instead, which closes the id.
func (i *ID) Close() error {
	if i == nil {
		return fmt.Errorf("destroy id: %w", errNil)
	}
	i.mu.Lock()
	if i.qp != nil {
		i.mu.Unlock()
		return fmt.Errorf("destroy id: %w: it has a queue pair; call DestroyQP first", verbs.ErrBusy)
	}
	c, err := i.channel, i.destroy()
	i.mu.Unlock()
	if err != nil {
		return fmt.Errorf("destroy id: %w", err)
	}
	c.awaitHandler()
	c.leave()
	return nil
}

// destroy frees the id on its devices. The caller holds mu.
func (s *spread) destroy() error {
	if len(s.parts) == 0 {
		return fmt.Errorf("%w: the id", verbs.ErrObjectClosed)
	}
	s.closeParts()
	return nil
}
