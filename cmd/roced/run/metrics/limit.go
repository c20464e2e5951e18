package metrics

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// mostConnections is the number of connections of one socket. A Prometheus server has one.
const mostConnections = 16

// limited is a listener that closes connections beyond mostConnections at once.
type limited struct {
	net.Listener
	log *slog.Logger

	mu      sync.Mutex
	open    int
	refused int       // since the last line of the log
	logged  time.Time // when that was
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.enter() {
			return &counted{Conn: conn, leave: sync.OnceFunc(l.leave)}, nil
		}
		_ = conn.Close()
	}
}

// enter counts a connection; false if there are too many, which is logged once a minute.
func (l *limited) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open < mostConnections {
		l.open++
		return true
	}
	l.refused++
	if now := time.Now(); now.Sub(l.logged) >= time.Minute {
		l.log.Warn("connections for metrics are refused", "listen", l.Addr(), "open", l.open, "refused", l.refused)
		l.logged, l.refused = now, 0
	}
	return false
}

func (l *limited) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
}

// counted is a connection of a limited listener.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
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
