package metrics

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
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

// scrape returns the status of a request that names a host; 0 if it is not answered.
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

// TestConnectionsAreLimited: sixteen connections are open, further ones are closed, and a scrape is served when one has
// ended.
func TestConnectionsAreLimited(t *testing.T) {
	var log strings.Builder
	address := serve(t, &log)
	var open []net.Conn
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	for range mostConnections {
		conn := dial()
		if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil { // it is counted
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	for range 50 {
		if n, err := dial().Read(make([]byte, 1)); n != 0 || err == nil {
			t.Fatalf("a further connection is served: %d, %v", n, err)
		}
	}
	open[0].Close()
	waittest.Eventually(t, "a scrape", func() bool { return scrape(t, address, "localhost") == http.StatusOK })
	if n := strings.Count(log.String(), "connections for metrics are refused"); n != 1 {
		t.Errorf("%d lines of the log", n)
	}
}

// TestHostsOfRequests: names that are not the service's are refused.
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
