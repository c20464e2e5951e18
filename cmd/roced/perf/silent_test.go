// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/perf/options"
	"github.com/roced/roced/cmd/roced/perf/own"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/internal/lab/labtest"
)

// impatientServer serves one client after another in namespace A. It drops a client that is silent for quiet.
func impatientServer(t *testing.T, hosts *labtest.PairLab, quiet time.Duration) (s *perfServer, log func() string) {
	t.Helper()
	var logged bytes.Buffer
	read, write := io.Pipe()
	o := &options.Options{Quiet: quiet, Out: write}
	o.Log = slog.New(slog.NewTextHandler(&logged, nil))
	o.Device, o.Namespace, o.GIDIndex = "eth0", hosts.A.Path(), card.AnyGID
	d, err := card.Open(o.Device, o.Path(), o.Log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- d.Use(ctx, func(ctx context.Context) error { return own.RunServer(ctx, d, o.Path(), o) })
	}()
	lines := bufio.NewScanner(read)
	lines.Scan()
	_, address, _ := strings.Cut(lines.Text(), " on ")
	address, _, _ = strings.Cut(address, ": ")
	go io.Copy(io.Discard, read)
	log = func() string {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return logged.String()
	}
	return &perfServer{lab: hosts, port: strconv.Itoa(int(netip.MustParseAddrPort(address).Port()))}, log
}

// TestSilentClient: a silent client is notified and dropped, and the next one is served.
func TestSilentClient(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	s, log := impatientServer(t, hosts, 3*time.Second)
	for _, kind := range []protocol.TestKind{protocol.Bandwidth, protocol.Latency} {
		conn := s.dial(t, hosts)
		defer conn.Close()
		text := requestOnce(t, conn, kind)
		if !strings.Contains(text, "sent no datagram and no message for 3s") {
			t.Errorf("%s: the server sent %s", kind, text)
		}
	}
	measured(t, s.client("10.77.0.1", "--sizes", "64", "--duration", "10ms", "-n", "10"))
	if text := log(); strings.Count(text, "sent no datagram and no message for 3s") != 2 {
		t.Errorf("the log: %s", text)
	}
}

// requestOnce requests one test, sends nothing more, and returns the server's text.
func requestOnce(t *testing.T, conn net.Conn, kind protocol.TestKind) string {
	t.Helper()
	io.WriteString(conn, cmdtest.PingpongAddress)
	io.ReadFull(conn, make([]byte, len(cmdtest.PingpongAddress)))
	io.WriteString(conn, meet.DoneMessage)
	say(conn, protocol.Request{Version: protocol.Version, Tests: []protocol.Test{{Kind: kind, Size: 64}}})
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
