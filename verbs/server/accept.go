// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/server/peer"
)

// retryAccept is how long Serve waits after a connection could not be accepted, for lack of descriptors for example.
const retryAccept = 100 * time.Millisecond

// Serve accepts connections until Close, which closes the listener. The listener is a *net.UnixListener of
// "unixpacket". Several can be served at once.
func (s *Server) Serve(listener net.Listener) error { return s.serve(listener, "") }

// serve serves the socket of a container; the name is empty for the service's own sockets.
func (s *Server) serve(listener net.Listener, container string) error {
	if err := s.addListener(listener); err != nil {
		return err
	}
	for {
		accepted, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			s.removeListener(listener)
			return nil
		case err != nil:
			s.limited.Warn(s.log, peer.Unknown, "cannot accept connections", err)
			time.Sleep(retryAccept)
			continue
		}
		socket, is := accepted.(*net.UnixConn)
		if !is {
			_ = accepted.Close()
			return fmt.Errorf("%w: clients connect over a unix socket of type unixpacket, not over %s", verbs.ErrInvalid, listener.Addr().Network())
		}
		s.accept(socket, listener, container)
	}
}

func (s *Server) addListener(listener net.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = listener.Close()
		return fmt.Errorf("serve: %w", verbs.ErrClosed)
	}
	peer.RefuseRights(listener)
	s.listeners = append(s.listeners, listener)
	return nil
}

func (s *Server) removeListener(listener net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = slices.DeleteFunc(s.listeners, func(l net.Listener) bool { return l == listener })
}

// accept starts a connection, if its user may have another one.
func (s *Server) accept(socket *net.UnixConn, listener net.Listener, container string) {
	now := time.Now()
	p, err := s.users.Identify(socket, container, now)
	if err != nil {
		s.limited.Warn(s.log, peer.Unknown, "cannot accept a connection", err)
		s.users.Refuse(socket, peer.Unknown, nil)
		return
	}
	user := p.Holder()
	if err := s.users.Allow(user, now); err != nil {
		s.limited.Warn(s.log, user, "connections of a user are closed unread", err)
		s.users.Refuse(socket, user, nil)
		return
	}
	place, err := s.users.Enter(user)
	if err != nil {
		s.limited.Warn(s.log, user, "connections of a user are refused", err)
		s.users.Refuse(socket, user, err)
		return
	}
	s.start(newConnection(s, socket, p, place), listener)
}

// start starts a connection, unless the server has been closed, or the listener by which it came removed: the next one of
// that name belongs to another container.
func (s *Server) start(c *connection, listener net.Listener) {
	s.mu.Lock()
	if !slices.Contains(s.listeners, listener) {
		s.mu.Unlock()
		c.end()
		return
	}
	defer s.mu.Unlock()
	s.admin.Add(c.client)
	s.connections[c] = struct{}{}
	s.all.Go(func() {
		c.run()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.connections, c)
		s.admin.Remove(c.client)
	})
}
