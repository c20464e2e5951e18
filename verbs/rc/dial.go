package rc

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
)

// resolveTimeout is how long the hardware address of the next hop may take.
const resolveTimeout = 4 * time.Second

// Dial connects to a peer that listens at an address and port. It waits until the peer has accepted, or until
// ctx is done. A *RejectedError says why the peer does not want the connection, verbs.ErrUnreachable that
// there is no way to it; a peer that does not answer is unix.ETIMEDOUT after 98 s.
func Dial(ctx context.Context, c *verbs.Context, to netip.AddrPort, o Options) (*Conn, error) {
	if err := o.checkIDs(maxRequestData); err != nil {
		return nil, fmt.Errorf("dial %v: %w", to, err)
	}
	conn, err := newConn(c, o)
	if err != nil {
		return nil, fmt.Errorf("dial %v: %w", to, err)
	}
	conn.making.Lock()
	err = conn.dial(ctx, to)
	conn.making.Unlock()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("dial %v: %w", to, err), conn.Close())
	}
	return conn, nil
}

func (c *Conn) dial(ctx context.Context, to netip.AddrPort) error {
	if err := c.resolve(ctx, to); err != nil {
		return err
	}
	if err := c.takeID(c.id); err != nil {
		return err
	}
	param := c.param(c.options.PrivateData)
	if err := c.id.Connect(&param); err != nil {
		return err
	}
	return c.established(ctx)
}

// resolve makes the id, and finds the way to the peer.
func (c *Conn) resolve(ctx context.Context, to netip.AddrPort) error {
	watcher, err := c.domain.watch()
	if err != nil {
		return err
	}
	if c.id, err = watcher.channel.CreateID(cm.PortSpaceTCP, c); err != nil {
		return err
	}
	if err := c.id.SetServiceType(c.options.TrafficClass); err != nil {
		return err
	}
	source := netip.AddrPort{}
	if o := &c.options; o.Source.IsValid() && !o.Source.IsUnspecified() {
		source = netip.AddrPortFrom(o.Source, 0)
	}
	if err := c.id.ResolveAddr(source, to, resolveTimeout); err != nil {
		return err
	}
	if _, err := c.await(ctx, cm.EventAddrResolved); err != nil {
		return err
	}
	if err := c.id.ResolveRoute(); err != nil {
		return err
	}
	_, err = c.await(ctx, cm.EventRouteResolved)
	return err
}

// takeID makes the queue pair of an id, and posts receives.
func (c *Conn) takeID(id *cm.ID) (err error) {
	c.id = id
	if c.qp, err = id.CreateQP(c.domain.pd, c.initAttr()); err != nil {
		return err
	}
	return c.postRecvs()
}

// param is what the peer is told.
func (c *Conn) param(said []byte) cm.ConnParam {
	reads := uint8(c.options.Reads)
	return cm.ConnParam{PrivateData: said, ResponderResources: reads, InitiatorDepth: reads}
}

// established waits until the connection can be used.
func (c *Conn) established(ctx context.Context) error {
	event, err := c.await(ctx, cm.EventEstablished)
	if err == nil && c.said == nil {
		c.said = event.PrivateData
	}
	return err
}

// await waits for an event of the id. Of a connection that was made, and has ended since, the first counts:
// what the peer has sent can be received.
func (c *Conn) await(ctx context.Context, want cm.EventType) (*cm.Event, error) {
	select {
	case event := <-c.news:
		return event, outcome(event, want)
	case <-c.ending.down.Done():
		select {
		case event := <-c.news:
			return event, outcome(event, want)
		default:
			return nil, c.ending.cause()
		}
	case <-c.life.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// outcome is what an event says for who waits for another.
func outcome(event *cm.Event, want cm.EventType) error {
	switch {
	case event.Type == want:
		return nil
	case event.Type == cm.EventRejected && event.Status > 0:
		return &RejectedError{event.Status, event.PrivateData, event.Err()}
	case event.Err() != nil:
		return event.Err()
	}
	return fmt.Errorf("wait for %v: %w: %v came", want, verbs.ErrInvalid, event.Type)
}

// happened takes an event of the id, in the watcher's goroutine. When the peer has ended the connection, the
// reason is known before its requests are flushed.
func (c *Conn) happened(event *cm.Event) {
	switch {
	case event.Type == cm.EventDisconnected:
		c.ending.set(ErrDisconnected)
		_ = event.ID.Disconnect() // else Close does
	case event.Type == cm.EventDeviceRemoval:
		c.ending.set(event.Err())
	case c.connected && event.Err() != nil: // the peer has given it up before it knew that it was made
		c.ending.set(ErrDisconnected)
	case event.Type != cm.EventTimewaitExit:
		c.connected = event.Type == cm.EventEstablished
		select {
		case c.news <- event:
		default: // nobody waits for it any more
		}
	}
}
