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
	mostConnections = 16                     // of one socket; a Prometheus server has one
	patience        = 100 * time.Millisecond // in which a new connection can send its request
	drainTime       = 500 * time.Millisecond // for reading the rest of a refused request
	drainBytes      = 1 << 20
)

// limited is a listener with at most mostConnections. Further connections wait in order, until one has ended or can be
// replaced: the one that has been without a complete request for longest.
type limited struct {
	net.Listener
	log     *slog.Logger
	changed chan struct{} // has one element after a change of what can be replaced
	closed  chan struct{}
	close   func()

	mu       sync.Mutex
	open     map[*counted]time.Time // since when they have no request; the zero time: they have one
	replaced int                    // since the last line of the log
	logged   time.Time              // when that was
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

// enter waits for a place; false if the listener is closed.
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

// tryEnter adds a connection, or returns when to try again if none changes earlier: nil if none can be replaced.
func (l *limited) tryEnter(c *counted) (wait <-chan time.Time, entered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= mostConnections {
		oldest := l.oldest()
		if oldest == nil {
			return nil, false
		}
		if age := time.Since(l.open[oldest]); age < patience {
			return time.After(patience - age), false
		}
		delete(l.open, oldest)
		_ = oldest.Conn.Close()
		l.logReplaced()
	}
	l.open[c] = time.Now()
	return nil, true
}

// oldest returns the connection that has been without a request for longest; nil if all have one, or data that may be one.
// The caller holds mu.
func (l *limited) oldest() (oldest *counted) {
	for c, since := range l.open {
		if !since.IsZero() && c.awaitsData() && (oldest == nil || since.Before(l.open[oldest])) {
			oldest = c
		}
	}
	return oldest
}

// logReplaced counts a connection that was replaced, and writes a line once a minute. The caller holds mu.
func (l *limited) logReplaced() {
	l.replaced++
	if now := time.Now(); now.Sub(l.logged) >= time.Minute {
		l.log.Warn("connections for metrics without a request are closed for new ones", "listen", l.Addr(), "open", mostConnections, "closed", l.replaced)
		l.logged, l.replaced = now, 0
	}
}

// track is the server's ConnState: a connection is active from the end of a request's header to the end of the answer.
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

// closeIfFull closes connections after their answer while all places are taken, so that a client that sends request
// after request keeps none.
func (l *limited) closeIfFull(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		full := len(l.open) >= mostConnections
		l.mu.Unlock()
		if full {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// counted is a connection of a limited listener.
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

// awaitsData reports whether the server has read all that the client has sent. On a busy machine it may be late.
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

// CloseWrite shuts down the sending side, and discards the rest of the request: with unread data, Close would reset the
// connection, and the client could lose the answer. The server calls it after status 431.
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

// checkHost refuses requests for a host name that is not the service's. A browser sends one if a page of another site
// has its name resolve to the service's address (DNS rebinding). Addresses, localhost, the machine's name and the
// configured names are allowed.
func checkHost(next http.Handler, names []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOwnHost(r.Host, names) {
			http.Error(w, "unknown host name; use an address, or add the name to metrics.hosts", http.StatusMisdirectedRequest)
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
