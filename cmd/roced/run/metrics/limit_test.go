// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/roced/roced/internal/waittest"
)

// serve serves metrics over TCP until the test ends.
func serve(t *testing.T, log io.Writer) (address string) {
	t.Helper()
	s := NewServer(func() []Device { return nil }, programs{}, "roced.monitoring.svc, other.example", slog.New(slog.NewTextHandler(log, nil)))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.ServeOwn(l)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// scrape returns the status of a request with a host name; 0 without a response.
func scrape(t *testing.T, address, host string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(waittest.Guard(t), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

const request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"

// dial opens a connection and sends a text.
func dial(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestConnectionsAreLimited: with sixteen connections open, further ones replace those without a complete request.
func TestConnectionsAreLimited(t *testing.T) {
	for name, text := range map[string]string{"silent": "", "half a request": request[:20]} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			address := serve(t, &log)
			var open []net.Conn
			for range maxConnections {
				open = append(open, dial(t, address, text))
			}
			for range 2 {
				if got := scrape(t, address, "localhost"); got != http.StatusOK {
					t.Fatalf("status %d", got)
				}
			}
			_, _ = io.Copy(io.Discard, open[0]) // until it is closed
			if n := strings.Count(log.String(), "in favour of new ones"); n != 1 {
				t.Errorf("%d lines of the log", n)
			}
		})
	}
}

// TestFullServerKeepsNoConnections: while the limit is reached, connections are closed after their response.
func TestFullServerKeepsNoConnections(t *testing.T) {
	address := serve(t, io.Discard)
	for range maxConnections - 1 {
		dial(t, address, "")
	}
	answer, err := io.ReadAll(dial(t, address, request+request))
	if err != nil || strings.Count(string(answer), "HTTP/1.1 200 OK") != 1 || !strings.Contains(string(answer), "Connection: close") {
		t.Errorf("%.300s, %v", answer, err)
	}
}

// TestBodiesAreNotAwaited: a request with a body is rejected without waiting for the body.
func TestBodiesAreNotAwaited(t *testing.T) {
	conn := dial(t, serve(t, io.Discard), strings.TrimSuffix(request, "\r\n")+"Content-Length: 10\r\n\r\n")
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 413 ") {
		t.Errorf("%.300s, %v", answer, err)
	}
}

// TestActiveConnectionsStay: connections with a request are not replaced.
func TestActiveConnectionsStay(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLimited(listener, slog.New(slog.DiscardHandler))
	connect := func() *counted {
		server, client := net.Pipe()
		t.Cleanup(func() { server.Close(); client.Close() })
		return &counted{Conn: server, of: l}
	}
	var open []*counted
	for range maxConnections {
		c := connect()
		if !l.enter(c) {
			t.Fatal("closed")
		}
		l.track(c, http.StateActive)
		open = append(open, c)
	}
	next := connect()
	if wait, entered := l.tryEnter(next); entered || wait != nil {
		t.Errorf("entered %v, wait %v", entered, wait)
	}
	if err := open[0].Close(); err != nil {
		t.Error(err)
	}
	if !l.enter(next) || len(l.open) != maxConnections {
		t.Errorf("%d are open", len(l.open))
	}
	l.track(next, http.StateActive)
	l.track(open[1], http.StateIdle)
	last := connect()
	if wait, entered := l.tryEnter(last); entered || wait != nil {
		t.Errorf("a connection with unread data: entered %v, wait %v", entered, wait)
	}
	go func() { _, _ = open[1].Read(make([]byte, 1)) }()
	if !l.enter(last) || len(l.open) != maxConnections {
		t.Error("an idle connection is not replaced")
	}
	if _, idle := l.open[open[1]]; idle {
		t.Error("a connection other than the idle one is replaced")
	}
	l.track(last, http.StateActive)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if l.enter(connect()) {
		t.Error("a closed listener has accepted a connection")
	}
}

// TestScrapesDuringAFlood: each scrape is served while 64 clients reconnect continuously.
func TestScrapesDuringAFlood(t *testing.T) {
	for name, text := range map[string]string{"silent": "", "half a request": request[:20], "requests": strings.Repeat(request, 5)} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, io.Discard)
			ctx, stop := context.WithCancel(waittest.Guard(t))
			var clients sync.WaitGroup
			defer clients.Wait()
			defer stop()
			for range 64 {
				clients.Go(func() {
					for ctx.Err() == nil {
						reconnect(ctx, address, text)
					}
				})
			}
			for range 3 {
				if got := scrape(t, address, "localhost"); got != http.StatusOK {
					t.Errorf("status %d", got)
				}
			}
		})
	}
}

// reconnect sends a text and reads until the connection or the context has ended.
func reconnect(ctx context.Context, address, text string) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, _ = io.WriteString(conn, text)
	_, _ = io.Copy(io.Discard, conn)
}

// TestLargeHeaders: a request with a header that is too long gets a response, and the connection ends without a reset.
func TestLargeHeaders(t *testing.T) {
	conn := dial(t, serve(t, io.Discard), strings.TrimSuffix(request, "\r\n")+"A: "+strings.Repeat("a", 200<<10))
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 431 ") {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestHostsOfRequests: other host names than the service's are rejected.
func TestHostsOfRequests(t *testing.T) {
	address := serve(t, io.Discard)
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		address: 200, "localhost": 200, "LOCALHOST:9464": 200, "10.0.0.1": 200, "[::1]:9464": 200, "[fe80::1]": 200, machine: 200, machine + ".:80": 200,
		"roced.monitoring.svc:9464": 200, "other.example": 200,
		"attacker.example": 421, "attacker.example:9464": 421, "localhost.attacker.example": 421, "10.0.0.1.attacker.example": 421,
	} {
		if got := scrape(t, address, host); got != want {
			t.Errorf("%s: status %d, want %d", host, got, want)
		}
	}
}
