package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

func perftestArgs(ns *lab.Namespace, args string) []string {
	return append([]string{"perf", "--perftest", "-d", "eth0", "--netns", ns.Path()}, strings.Fields(args)...)
}

// perftestBetween runs both sides, and gives their reports.
func perftestBetween(t *testing.T, hosts *labtest.PairLab, serverArgs, clientArgs string) (client report, serverText string) {
	t.Helper()
	server, port := startWaiting(t, perftestArgs(hosts.A, serverArgs))
	client = measured(t, perftestArgs(hosts.B, clientArgs+" -p "+port))
	code, serverText := server.wait()
	if code != 0 {
		t.Fatalf("server: exit code %d: %s", code, server.stderr.String())
	}
	return client, serverText
}

func TestPerftestBandwidth(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, row := range []struct {
		name, server, client, from, to string
		size                           int
	}{
		{"IPv4", "-s 64", "10.77.0.1 -s 64", "10.77.0.2", "10.77.0.1", 64},
		{"IPv6", "", "fd77::1", "fd77::2", "fd77::1", 1024},
		{"IPv6, met over IPv4", "--sleep -s 0", "10.77.0.1 -g 1 --sleep -s 0", "fd77::2", "fd77::1", 0},
		{"IPv4 group", "--group " + testGroup4, "10.77.0.1", "10.77.0.2", testGroup4, 1024},
		{"IPv6 group", "--group " + testGroup6, "fd77::1", "fd77::2", testGroup6, 1024},
		{"slowly", "", "10.77.0.1 --rate 10000", "10.77.0.2", "10.77.0.1", 1024},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, text := perftestBetween(t, hosts, "--bandwidth -n 300 "+row.server, "--bandwidth -n 300 "+row.client)
			if r.Client.Address != row.from || r.Server.Address != row.to || r.Server.Device != "perftest 6.06" || r.Server.MTU != 1024 {
				t.Errorf("from %v to %v", r.Client, r.Server)
			}
			if len(r.Bandwidth) != 1 {
				t.Fatalf("%d results", len(r.Bandwidth))
			}
			b := r.Bandwidth[0]
			if b.Size != row.size || *b.Sent != 300 || *b.SentPerSecond == 0 || *b.Duration == 0 {
				t.Errorf("%+v", b)
			}
			if b.Received != nil || b.ReceivedPerSec != nil || b.ReceivedBytesSec != nil || b.Lost != nil || b.Unaccounted != nil || b.NotMeasured == "" {
				t.Errorf("not measured, and told: %+v", b)
			}
			checkSays(t, text, "client: perftest 6.06, "+row.from+", RDMA MTU 1024\n", "server: eth0, "+row.to+", RDMA MTU 1024, XDP ", "not measured: what was sent, and so what was lost")
			checkSays(t, strings.Join(strings.Fields(text), " "), fmt.Sprintf("%d - - 300", row.size))
		})
	}
}

func TestPerftestLatency(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, row := range []struct {
		name, server, client string
		size                 int
	}{
		{"IPv4", "", "10.77.0.1", 2},
		{"IPv6", "-s 100", "fd77::1 -s 100", 100},
		{"groups", "--group 239.1.2.3", "10.77.0.1 --group 239.1.2.4 --sleep", 2},
		{"IPv6 groups", "--group ff0e::3", "fd77::1 --group ff0e::4", 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, text := perftestBetween(t, hosts, "--latency -n 50 "+row.server, "--latency -n 50 "+row.client)
			if len(r.Latency) != 1 {
				t.Fatalf("%d results", len(r.Latency))
			}
			checkLatency(t, r.Latency[0], row.size, 49)
			checkSays(t, text, "full round trip in microseconds")
		})
	}
}

// TestPerftestJSONServer: its one line for people does not disturb the report.
func TestPerftestJSONServer(t *testing.T) {
	hosts := labtest.Pair(t)
	taken, port := startWaiting(t, perftestArgs(hosts.A, "--latency")) // a free port, which must be given
	taken.stop()
	taken.wait()
	server := start(t, perftestArgs(hosts.A, "--bandwidth --json -n 5 -p "+port)...)
	var client int
	for client = exitFailed; client != 0; { // until the server listens
		client, _, _ = roced(t, perftestArgs(hosts.B, "--bandwidth -n 5 10.77.0.1 -p "+port)...)
		select {
		case <-server.ended:
			client = 0
		default:
		}
	}
	code, text := server.wait()
	var r report
	if err := json.Unmarshal([]byte(text), &r); code != 0 || err != nil || len(r.Bandwidth) != 1 || *r.Bandwidth[0].Received != 5 || r.Bandwidth[0].Sent != nil {
		t.Errorf("exit code %d: %v in %q: %s", code, err, text, server.stderr.String())
	}
}

// TestPerftestCountsDiffer: as messages that are lost, or too many.
func TestPerftestCountsDiffer(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, row := range []struct{ kind, server, client, want string }{
		{"--bandwidth", "-n 50", "-n 40", "40 messages came, not 50 (dropped here: none; see the peer's counters); was ib_send_bw -c UD given the same -n, and not -D?"},
		{"--bandwidth", "-n 50", "-n 60", "60 messages came, not 50"},
		{"--bandwidth", "-n 50 -s 8", "-n 50 -s 7", "a message of 7 bytes, not 8; give both sides the same -s"},
		{"--latency", "-n 50 -W 3s", "-n 40", "sent 40 messages and received 40, of 50 each way; then nothing came for 3s"},
		{"--latency", "-n 50 -s 8", "-n 50 -s 7 -W 100ms", "7 bytes, not 8; give both sides the same -s"},
	} {
		server, port := startWaiting(t, perftestArgs(hosts.A, row.kind+" "+row.server))
		roced(t, perftestArgs(hosts.B, row.kind+" "+row.client+" 10.77.0.1 -p "+port)...)
		if code, _ := server.wait(); code != exitFailed || !strings.Contains(server.stderr.String(), row.want) {
			t.Errorf("%s: exit code %d, want one that says %q: %s", row.client, code, row.want, server.stderr.String())
		}
	}
}

// perftestServer is a fake one, that has the conversation until before its last word, as
// one does that waits for lost messages.
func perftestServer(t *testing.T, hosts *labtest.PairLab) string {
	t.Helper()
	listener := listenOnA(t, hosts)
	t.Cleanup(func() { listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		keys := strings.ReplaceAll(serverKeys, ":0a:42:00:01:", ":0a:4d:00:01:")
		x := &perftestExchange{conn: conn}
		x.greet(3)
		x.meet(func(*perftestKeys) (perftestKeys, error) { return parsePerftestKeys([]byte(keys)) })
		x.prepare()
		io.Copy(io.Discard, conn)
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

func TestPerftestServerNeverAnswers(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, row := range []struct{ kind, want string }{
		{"--bandwidth", "sent 20 messages; ib_send_bw -c UD has not said within 2s that it has them all"},
		{"--latency", "sent 1 messages and received 0, of 20 each way; then nothing came for 2s"},
	} {
		args := perftestArgs(hosts.B, row.kind+" -n 20 -W 2s 10.77.0.1 -p "+perftestServer(t, hosts))
		checkFailure(t, args, exitFailed, row.want, "must be stopped", "timed out")
	}
}

// TestPerftestClientSendsNothing: the server does not wait for its messages forever, nor
// for one that has gone.
func TestPerftestClientSendsNothing(t *testing.T) {
	hosts := labtest.Pair(t)
	for want, leave := range map[string]bool{"0 messages came, and nothing more for 2s": false, "closed the connection": true} {
		server, port := startWaiting(t, perftestArgs(hosts.A, "--bandwidth -n 20 -W 2s"))
		conn, err := dialTCP(hosts.B.Path(), "10.77.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		keys := strings.ReplaceAll(clientKeys, ":0a:42:00:02:", ":0a:4d:00:02:")
		x := &perftestExchange{conn: conn, client: true}
		x.greet(3)
		x.meet(func(*perftestKeys) (perftestKeys, error) { return parsePerftestKeys([]byte(keys)) })
		if err := x.prepare(); err != nil {
			t.Error(err)
		}
		if leave {
			conn.Close()
		}
		if code, _ := server.wait(); code != exitFailed || !strings.Contains(server.stderr.String(), want) {
			t.Errorf("exit code %d, want one that says %q: %s", code, want, server.stderr.String())
		}
		conn.Close()
	}
}

func TestPerftestErrors(t *testing.T) {
	hosts := labtest.Pair(t)
	checkFailure(t, perftestArgs(hosts.B, "--latency 10.77.0.1 -p 1"), exitFailed, "refused", "ib_send_lat -c UD")
	server, port := startWaiting(t, perftestArgs(hosts.A, "--bandwidth -s 1025"))
	checkFailure(t, perftestArgs(hosts.B, "--bandwidth 10.77.0.1 -p "+port), exitFailed, "closed the connection")
	if code, _ := server.wait(); code != exitFailed || !strings.Contains(server.stderr.String(), "RDMA MTU is 1024") {
		t.Errorf("exit code %d: %s", code, server.stderr.String())
	}
	server, port = startWaiting(t, perftestArgs(hosts.A, "--bandwidth -g 1"))
	checkFailure(t, perftestArgs(hosts.B, "--bandwidth -g 0 10.77.0.1 -p "+port), exitFailed, "one is IPv4, the other IPv6")
	server.wait()
}

func TestPerftestEndsOnSignal(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, row := range []struct{ args, line string }{
		{"--bandwidth -p 0", "waiting for ib_send_bw -c UD of perftest 6.06"},
		{"--latency -p 0", "waiting for ib_send_lat -c UD of perftest 6.06"},
	} {
		c := command(t, perftestArgs(hosts.A, row.args)...)
		c.start(t)
		c.await(t, row.line)
		c.Process.Signal(unix.SIGINT)
		if code, _ := c.end(t); code != exitSignal+int(unix.SIGINT) {
			t.Errorf("exit code %d: %s", code, c.stderr.String())
		}
	}
}

// TestPerftestServerThatSends: ib_send_bw does with -b and --reversed. Then nothing is
// reported: what made it answer is not what it received.
func TestPerftestServerThatSends(t *testing.T) {
	hosts := labtest.Pair(t)
	listener := listenOnA(t, hosts)
	defer listener.Close()
	served := make(chan error, 1)
	go func() { served <- sendAsServer(t, hosts, listener) }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	code, stdout, stderr := roced(t, perftestArgs(hosts.B, "--bandwidth -n 20 10.77.0.1 -p "+port)...)
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if code != exitFailed || !strings.Contains(stderr, "started with -b or --reversed") || strings.Contains(stdout, "Bandwidth") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// sendAsServer is a server of ib_send_bw --reversed.
func sendAsServer(t *testing.T, hosts *labtest.PairLab, listener net.Listener) (err error) {
	d, err := openDevice("eth0", hosts.A.Path(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	e, err := newEndpoint(d, endpointAttr{depth: window, size: d.mtu, qkey: testQKey})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	x := &perftestExchange{conn: conn}
	for _, step := range []func() error{
		func() error { _, err := x.greet(3); return err },
		func() error {
			return x.meet(func(peer *perftestKeys) (own perftestKeys, err error) {
				entry, err := d.chooseGID(0, netip.Addr{}, verbs.GID{})
				own.QPN, own.GID = e.qp.Number(), entry.GID
				return own, errors.Join(err, e.aim(0, peer.GID, peer.QPN))
			})
		},
		x.prepare,
		func() error { e.shape(d.mtu, verbs.WRSend); return e.postSends(20) },
		func() error { return e.reapAll(t.Context(), true) },
		x.awaitEnd,
		x.end,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	io.Copy(io.Discard, conn)
	return nil
}
