// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/internal/transport"
)

// Listener accepts connections at an address and port. Its methods are safe for concurrent use.
type Listener struct {
	verbs   *verbs.Context
	options Options
	domain  *Domain
	life    transport.Life
	channel *cm.EventChannel // events of requests, which stay on the card until they are dequeued
	id      *cm.ID
	addr    netip.AddrPort

	room   chan struct{} // full while Options.Backlog connections wait for Accept
	ready  chan *Conn
	failed chan struct{} // closed when no more requests can arrive
	reason error         // set before failed is closed
}

// Listen accepts connections at an address of the device and a port. Address :: means all addresses, 0.0.0.0 all IPv4
// addresses, and port 0 any free port. The errors include verbs.ErrAddrInUse, verbs.ErrAddrNotAvail and, for a
// privileged port, verbs.ErrPermission (see cm.ID.Bind).
func Listen(c *verbs.Context, at netip.AddrPort, o Options) (*Listener, error) {
	l, err := newListener(c, o)
	if err != nil {
		return nil, fmt.Errorf("listen at %v: %w", at, err)
	}
	if err := l.open(at); err != nil {
		return nil, errors.Join(fmt.Errorf("listen at %v: %w", at, err), l.Close())
	}
	l.life.Go(l.serve)
	return l, nil
}

func newListener(c *verbs.Context, o Options) (*Listener, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: no verbs.Context", verbs.ErrInvalid)
	}
	if err := o.checkIDs(maxAnswerData); err != nil {
		return nil, err
	}
	if err := o.complete(c); err != nil {
		return nil, err
	}
	d, err := domainFor(c, o.Domain)
	if err != nil {
		return nil, err
	}
	o.Domain = d
	l := &Listener{verbs: c, options: o, domain: d, failed: make(chan struct{})}
	l.room, l.ready = make(chan struct{}, o.Backlog), make(chan *Conn, o.Backlog)
	l.life.Begin(ErrClosed)
	return l, nil
}

func (l *Listener) open(at netip.AddrPort) (err error) {
	if _, err = l.domain.watch(); err != nil {
		return err
	}
	if l.channel, err = cm.CreateEventChannel(l.verbs); err != nil {
		return err
	}
	if l.id, err = l.channel.CreateID(cm.PortSpaceTCP, nil); err != nil {
		return err
	}
	if err = l.id.Bind(at); err != nil {
		return err
	}
	if err = l.id.Listen(0); err != nil {
		return err
	}
	l.addr, err = l.id.LocalAddr()
	return err
}

// Addr returns the address and port of the listener.
func (l *Listener) Addr() netip.AddrPort {
	if l == nil {
		return netip.AddrPort{}
	}
	return l.addr
}

// Accept waits for a connection until ctx is done. The returned connection is established, and its peer may already
// have sent messages.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	if l == nil {
		return nil, fmt.Errorf("accept: %w", errNil)
	}
	if l.life.Err() != nil {
		return nil, ErrClosed
	}
	select {
	case conn := <-l.ready:
		<-l.room
		return conn, nil
	case <-l.life.Done():
		return nil, ErrClosed
	case <-l.failed:
		if l.life.Err() != nil {
			return nil, ErrClosed
		}
		return nil, fmt.Errorf("accept: %w", l.reason)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve accepts requests while there is room for connections.
func (l *Listener) serve() {
	defer close(l.failed)
	for {
		select {
		case l.room <- struct{}{}:
		case <-l.life.Done():
			return
		}
		event, err := l.channel.Get(l.life.Context)
		if err != nil {
			l.reason = err
			return
		}
		if event.Type != cm.EventConnectRequest {
			<-l.room
			continue
		}
		l.take(event)
	}
}

// take accepts or rejects a request, and starts a goroutine that waits for the client's confirmation.
func (l *Listener) take(request *cm.Event) {
	conn, err := l.accept(request)
	if err != nil {
		_ = request.ID.Reject(clip(err.Error())) // fails if the peer has withdrawn the request
		l.drop(conn, request.ID)
		return
	}
	l.life.Go(func() {
		if conn.handshake.established(l.life.Context) != nil {
			l.drop(conn, nil)
			return
		}
		l.ready <- conn
	})
}

// accept creates the connection of a request. If it fails, it returns the partial connection.
func (l *Listener) accept(request *cm.Event) (conn *Conn, err error) {
	answer := l.options.PrivateData
	if admit := l.options.Admit; admit != nil {
		client, err := request.ID.PeerAddr()
		if err != nil {
			return nil, err
		}
		if answer, err = admit(client, request.PrivateData); err != nil {
			return nil, err
		}
	}
	watcher, err := l.domain.watch()
	if err != nil {
		return nil, err
	}
	if conn, err = newConn(l.verbs, l.options); err != nil {
		return nil, err
	}
	conn.handshake.remoteData = append([]byte{}, request.PrivateData...)
	request.ID.Context = conn
	if err := request.ID.Migrate(watcher.channel); err != nil {
		return conn, err
	}
	if err := conn.createQP(request.ID); err != nil {
		return conn, err
	}
	param := conn.options.param(answer)
	return conn, request.ID.Accept(&param)
}

// drop closes a connection that was not established, or the id if there is no connection.
func (l *Listener) drop(conn *Conn, id *cm.ID) {
	<-l.room
	if conn != nil && conn.handshake.id != nil {
		id = nil
	}
	if conn != nil {
		_ = conn.Close()
	}
	if id != nil {
		_ = id.Close()
	}
}

// maxRejection is the maximum length of the private data of a REJ, in bytes.
const maxRejection = 148

func clip(text string) []byte { return []byte(text[:min(len(text), maxRejection)]) }

// Close stops listening. Connections that Accept has returned stay open; others are closed. Waiting calls return
// ErrClosed. Closing again has no effect.
func (l *Listener) Close() error {
	if l == nil {
		return fmt.Errorf("close: %w", errNil)
	}
	if !l.life.End() {
		return nil
	}
	l.life.Wait()
	return errors.Join(l.closeReady(), transport.Free(l.id), transport.Free(l.channel), l.domain.leave())
}

// closeReady closes the connections that have not been accepted.
func (l *Listener) closeReady() (err error) {
	for {
		select {
		case conn := <-l.ready:
			err = errors.Join(err, conn.Close())
		default:
			return err
		}
	}
}
