// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"sync"

	"github.com/roced/roced/verbs"
)

// Containers are the sockets of containers. All programs that come by one socket count as one user, whatever their uids,
// since most programs in containers are root. They see no objects of others, and have no privileges.
type Containers struct {
	make  func(name string) (l net.Listener, path string, err error)
	serve func(l net.Listener, name string) error
	log   *slog.Logger

	mu   sync.Mutex
	open map[string]containerSocket
}

type containerSocket struct {
	net.Listener
	path string
}

// mostContainers is the largest number of sockets.
const mostContainers = 4096

// containerName is a name that a folder may have.
var containerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// NewContainers returns an empty set. makeSocket makes the socket of a name; nil if the service makes none. serve serves a
// socket until it is closed.
func NewContainers(makeSocket func(name string) (l net.Listener, path string, err error), serve func(l net.Listener, name string) error, log *slog.Logger) *Containers {
	return &Containers{make: makeSocket, serve: serve, log: log, open: map[string]containerSocket{}}
}

// Add makes and serves the socket of a container, and returns its path. If the name exists, Add returns the existing path.
func (c *Containers) Add(name string) (path string, err error) {
	if !containerName.MatchString(name) {
		return "", fmt.Errorf("%w: socket %q: a name has at most 63 letters, digits, and . _ -, and begins with a letter or digit", verbs.ErrInvalid, name)
	}
	if c.make == nil {
		return "", fmt.Errorf("%w: this service makes no sockets for containers", verbs.ErrUnsupported)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if existing, is := c.open[name]; is {
		return existing.path, nil
	}
	if len(c.open) >= mostContainers {
		return "", fmt.Errorf("%w: %d sockets of containers; remove some", verbs.ErrLimit, len(c.open))
	}
	listener, path, err := c.make(name)
	if err != nil {
		return "", fmt.Errorf("%w: socket %s: %w", verbs.ErrHost, name, err)
	}
	c.open[name] = containerSocket{listener, path}
	go func() {
		if err := c.serve(listener, name); err != nil {
			c.log.Warn("the socket of a container is not served", "name", name, "error", err)
		}
	}()
	return path, nil
}

// Remove closes the socket of a container, and then calls end, which ends the connections that came by it. Add makes no
// socket of that name before Remove has returned, since its folder would be removed with this one.
func (c *Containers) Remove(name string, end func(net.Listener)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	socket, is := c.open[name]
	if !is {
		return fmt.Errorf("%w: there is no socket %q", verbs.ErrInvalid, name)
	}
	delete(c.open, name)
	err := socket.Close()
	end(socket.Listener)
	return err
}
