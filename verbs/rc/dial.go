// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
)

// Dial connects to a peer that listens at a host and port ("name:port", "10.0.0.2:7174", "[fd00::2]:7174"), as net.Dial
// does. It uses the card that the host's route to the peer selects, and ignores cards that have failed or are closed.
// If the name has several addresses, it tries them in order. See DialAddr for the errors.
func Dial(ctx context.Context, cards []*verbs.Context, address string, o Options) (*Conn, error) {
	peers, err := lookup(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	working := slices.DeleteFunc(slices.Clone(cards), isDead)
	if len(working) == 0 {
		working = cards // for the error
	}
	var failed error
	for _, peer := range peers {
		card, err := route(ctx, working, o.sourcePort(), peer)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("dial %v: %w", peer, err))
			continue
		}
		conn, err := DialAddr(ctx, card, peer, o)
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// isDead reports whether a card no longer executes commands.
func isDead(card *verbs.Context) bool {
	_, err := card.QueryDevice()
	return errors.Is(err, verbs.ErrDeviceFatal) || errors.Is(err, verbs.ErrClosed)
}

// lookup resolves a host name and a port. It returns at least one address or an error.
func lookup(ctx context.Context, address string) (all []netip.AddrPort, err error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, err
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for _, a := range addresses {
		all = append(all, netip.AddrPortFrom(a.Unmap(), uint16(port)))
	}
	return all, err
}

// route returns the card selected by the host's route to a peer.
func route(ctx context.Context, cards []*verbs.Context, source, to netip.AddrPort) (card *verbs.Context, err error) {
	channel, err := cm.CreateEventChannel(cards...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, channel.Close()) }()
	id, err := channel.CreateID(cm.PortSpaceTCP, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, id.Close()) }()
	if err := id.ResolveAddr(source, to, resolveTimeout); err != nil {
		return nil, err
	}
	event, err := channel.Get(ctx)
	if err != nil {
		return nil, err
	}
	if err := outcome(event, cm.EventAddrResolved); err != nil {
		return nil, err
	}
	return id.Device()
}

// DialAddr connects over a card to a peer that listens at an address and port. It waits until the peer has accepted, or
// until ctx is done. A *RejectedError contains the reason why the peer has refused the connection. verbs.ErrUnreachable
// means that there is no route to the peer, and unix.ETIMEDOUT that the peer has not responded within 103 s.
func DialAddr(ctx context.Context, c *verbs.Context, to netip.AddrPort, o Options) (*Conn, error) {
	conn, err := dial(ctx, c, to, o)
	if err != nil {
		return nil, fmt.Errorf("dial %v: %w", to, err)
	}
	return conn, nil
}

func dial(ctx context.Context, c *verbs.Context, to netip.AddrPort, o Options) (*Conn, error) {
	if err := o.checkIDs(maxRequestData); err != nil {
		return nil, err
	}
	conn, err := newConn(c, o)
	if err != nil {
		return nil, err
	}
	if err := conn.dial(ctx, to); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (c *Conn) dial(ctx context.Context, to netip.AddrPort) error {
	watcher, err := c.domain.watch()
	if err != nil {
		return err
	}
	h := &c.handshake
	if h.id, err = watcher.channel.CreateID(cm.PortSpaceTCP, c); err != nil {
		return err
	}
	if err := h.resolve(ctx, &c.options, to); err != nil {
		return err
	}
	if err := c.createQP(h.id); err != nil {
		return err
	}
	param := c.options.param(c.options.PrivateData)
	if err := h.id.Connect(&param); err != nil {
		return err
	}
	return h.established(ctx)
}

// createQP creates the queue pair of an id, and posts receives.
func (c *Conn) createQP(id *cm.ID) (err error) {
	c.handshake.id = id
	if c.qp, err = id.CreateQP(c.domain.pd, c.initAttr()); err != nil {
		return err
	}
	return c.postRecvs()
}

// param returns the parameters of the connection that are sent to the peer.
func (o *Options) param(privateData []byte) cm.ConnParam {
	reads := uint8(o.Reads)
	return cm.ConnParam{PrivateData: privateData, ResponderResources: reads, InitiatorDepth: reads}
}
