// SPDX-License-Identifier: Apache-2.0

package compatible

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/perf/connection"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/verbs"
)

// TestOtherOperation: a server of WRITEs or reads returns an error that names --op if its client, which exchanges no
// terms, is silent or uses another operation.
func TestOtherOperation(t *testing.T) {
	t.Parallel()
	const none = connection.Operation("")
	for _, row := range []struct {
		server string
		client connection.Operation
		want   string
		names  string // the counter in the error
	}{
		{"--bandwidth --op=write", none, "no packet of the client was delivered for 1s", "dropped here: none"},
		{"--latency --op=read", none, "no packet of the client was delivered for 1s", "dropped here: none"},
		{"--bandwidth --op=write", connection.Send, "no packet of the client was delivered for 1s", "engine drop_no_receive"},
		{"--bandwidth --op=send", none, "has sent no datagram and no message for 1s", "dropped here: none"},
		{"--bandwidth --op=write", connection.Read, "it has not measured --op write", "delivered_bytes"},
		{"--bandwidth --op=read", connection.Write, "it has not measured --op read", "sent_bytes"},
	} {
		socket := cmdtest.ServeMemory(t)
		o := parse(t, append(strings.Fields(row.server), "--rc", "--sizes=64", "--count=10")...)
		o.Quiet = time.Hour
		if strings.Contains(row.want, "for 1s") {
			o.Quiet = time.Second
		}
		port, ended := startPerftest(t, socket, func(ctx context.Context, d *card.Device, out io.Writer) error {
			o.Out = out
			return RunPerftest(ctx, d, "", o)
		})
		stop := startOther(t, socket, port, o.Reports(), row.client)
		err := <-ended
		stop()
		if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), row.names) || !strings.Contains(err.Error(), "the same --op") {
			t.Errorf("%s, client %q: %v", row.server, row.client, err)
		}
	}
}

// startPerftest runs a server on device left, and returns its address.
func startPerftest(t *testing.T, socket string, serve func(context.Context, *card.Device, io.Writer) error) (address string, ended <-chan error) {
	t.Helper()
	d := connected(t, socket, "left")
	read, write := io.Pipe()
	end := make(chan error, 1)
	go func() {
		end <- serve(t.Context(), d, write)
		write.Close()
	}()
	lines := bufio.NewScanner(read)
	lines.Scan()
	go io.Copy(io.Discard, read)
	_, at, _ := strings.Cut(lines.Text(), " on ")
	at, _, _ = strings.Cut(at, ": ")
	return at, end
}

func connected(t *testing.T, socket, name string) *card.Device {
	t.Helper()
	d, err := card.Connect(t.Context(), socket, name, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// startOther starts a perftest client on device right, which makes requests of an operation, if any, and reports them.
func startOther(t *testing.T, socket, address string, reports bool, operation connection.Operation) (stop func()) {
	t.Helper()
	d := connected(t, socket, "right")
	source, err := d.ChooseGID(card.AnyGID, netip.Addr{}, verbs.GID{})
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := connection.Open(d, source, connection.Options{Type: verbs.QPTypeRC, Operation: operation, Size: 64, Count: 1, Depth: 1, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	x := &perftest.Conversation{Conn: conn, Client: true, Reports: reports}
	mtu, err := x.Greet(verbs.MTU1024)
	for _, step := range []func() error{
		func() error {
			return x.Meet(func(*perftest.Keys) (perftest.Keys, error) { return pairs.Keys(0), nil })
		},
		func() error { return pairs.Connect(x.Peer, mtu) },
		x.Prepare,
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if operation == "" {
			return
		}
		if _, err := pairs.Request(ctx, 10, nil); err == nil {
			_ = x.TellResult(perftest.NewResult(64, 10, 1000))
		}
	}()
	return func() {
		cancel()
		conn.Close()
		<-ended
		pairs.Close()
	}
}
