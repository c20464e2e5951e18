// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxConnections = 16                     // per socket; a Prometheus server uses one
	replaceAfter   = 100 * time.Millisecond // minimum age of an idle connection that can be replaced
	drainTime      = 500 * time.Millisecond // for reading the rest of a refused request
	drainBytes     = 1 << 20
)

// limited is a listener with at most maxConnections. Further connections wait in order until one ends or can
// be replaced: the one that has been without a complete request for longest.
type limited struct {
	net.Listener
	log     *slog.Logger
	changed chan struct{} // signalled when a replaceable connection may exist
	closed  chan struct{}
	close   func()

	mu       sync.Mutex
	open     map[*counted]time.Time // start of the time without a request; zero while it has one
	replaced int                    // since the last log line
	logged   time.Time              // time of the last log line
}

func newLimited(l net.Listener, log *slog.Logger) *limited {
	closed := make(chan struct{})
	return &limited{
		Listener: l, log: log, open: map[*counted]time.Time{}, changed: make(chan struct{}, 1),
		closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := (&counted{Conn: conn, of: l}); l.enter(c) {
			return c, nil
		}
		_ = conn.Close()
	}
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.close()
	return l.Listener.Close()
}

// enter waits until the connection is admitted; false if the listener is closed.
func (l *limited) enter(c *counted) bool {
	for {
		wait, entered := l.tryEnter(c)
		if entered {
			return true
		}
		select {
		case <-l.closed:
			return false
		case <-l.changed:
		case <-wait:
		}
	}
}

// tryEnter admits a connection, or returns a timer for the next attempt; nil if no connection can be replaced
// yet.
func (l *limited) tryEnter(c *counted) (wait <-chan time.Time, entered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= maxConnections {
		oldest := l.oldest()
		if oldest == nil {
			return nil, false
		}
		if age := time.Since(l.open[oldest]); age < replaceAfter {
			return time.After(replaceAfter - age), false
		}
		delete(l.open, oldest)
		_ = oldest.Conn.Close()
		l.logReplaced()
	}
	l.open[c] = time.Now()
	return nil, true
}

// oldest returns the connection that has been without a request for longest; nil if all have a request or
// unread data. The caller holds mu.
func (l *limited) oldest() (oldest *counted) {
	for c, since := range l.open {
		if !since.IsZero() && c.awaitsData() && (oldest == nil || since.Before(l.open[oldest])) {
			oldest = c
		}
	}
	return oldest
}

// logReplaced counts a replaced connection and logs at most once a minute. The caller holds mu.
func (l *limited) logReplaced() {
	l.replaced++
	if now := time.Now(); now.Sub(l.logged) >= time.Minute {
		l.log.Warn("idle metrics connections closed in favour of new ones", "listen", l.Addr(), "open", maxConnections, "closed", l.replaced)
		l.logged, l.replaced = now, 0
	}
}

// track implements http.Server.ConnState: a connection is active from the end of the request header to the
// end of the response.
func (l *limited) track(conn net.Conn, state http.ConnState) {
	c := conn.(*counted)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; !open {
		return
	}
	switch state {
	case http.StateActive:
		l.open[c] = time.Time{}
	case http.StateIdle:
		l.open[c] = time.Now()
		l.notify()
	}
}

func (l *limited) leave(c *counted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	l.notify()
}

func (l *limited) notify() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// closeIfFull closes connections after their response while the limit is reached, so that no client can keep
// one by sending request after request.
func (l *limited) closeIfFull(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		full := len(l.open) >= maxConnections
		l.mu.Unlock()
		if full {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// counted is a connection of a limited listener, which counts it.
type counted struct {
	net.Conn
	of      *limited
	reading atomic.Bool
}

// Read implements net.Conn.
func (c *counted) Read(p []byte) (int, error) {
	c.reading.Store(true)
	defer c.reading.Store(false)
	c.of.notify()
	return c.Conn.Read(p)
}

// awaitsData reports whether the server has read all data from the client and waits for more. On a busy machine the
// server may not have read it yet.
func (c *counted) awaitsData() bool {
	if !c.reading.Load() {
		return false
	}
	unread := 0
	if socket, ok := c.Conn.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { unread, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		}
	}
	return unread == 0
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.of.leave(c)
	return c.Conn.Close()
}

// CloseWrite shuts down the sending side and discards the rest of the request. Otherwise Close would reset
// the connection because of unread data, and the client could lose the response. The server calls it after
// status 431.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		if err := half.CloseWrite(); err != nil {
			return err
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(drainTime)); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, c.Conn, drainBytes)
	return err
}

// checkHost rejects requests for a host name that is not the service's, which a browser sends if another
// site's name resolves to the service's address (DNS rebinding). Addresses, localhost, the machine's name and
// the configured names are allowed.
func checkHost(next http.Handler, names []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOwnHost(r.Host, names) {
			http.Error(w, "unknown host name: use an address, or add the name to metrics.hosts", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isOwnHost(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	machine, _ := os.Hostname()
	own := append([]string{"localhost", machine}, names...)
	return slices.ContainsFunc(own, func(name string) bool { return name != "" && strings.EqualFold(name, host) })
}
