// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/cmd/roced/perf/traffic"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// keysAt returns the keys of a peer that does not exist, at 10.77.0.x.
func keysAt(x byte) perftest.Keys {
	return perftest.Keys{
		Destination: meet.Destination{QPN: 0x11, PSN: 0xf591df, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 14: 0, 15: x}},
		OutReads:    1, RKey: 0x1234, Address: 0x55d8fe2c0000,
	}
}

// perftestServer is a fake server that completes the exchange except for its last message, like one
// that waits for lost messages.
func perftestServer(t *testing.T, hosts *labtest.PairLab) string {
	t.Helper()
	listener := cmdtest.ListenOnA(t, hosts)
	t.Cleanup(func() { listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		x := &perftest.Conversation{Conn: conn}
		x.Greet(3)
		x.Meet(func(*perftest.Keys) (perftest.Keys, error) { return keysAt(1), nil })
		x.Prepare()
		io.Copy(io.Discard, conn)
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

func TestPerftestServerNeverAnswers(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct{ kind, want string }{
		{"--bandwidth --sleep", "sent 20 messages; ib_send_bw -c UD has not confirmed all within 2s"},
		{"--latency", "sent 1 messages and received 0 of 20 each way; no further message received in 2s"},
	} {
		args := perftestArgs(hosts.B, row.kind+" -n 20 -W 2s 10.77.0.1 -p "+perftestServer(t, hosts))
		cmdtest.CheckFailure(t, args, cli.ExitFailed, row.want, "must be stopped", "timed out")
	}
}

// TestPerftestClientSendsNothing: the server ends when its client is silent or disconnects.
func TestPerftestClientSendsNothing(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for want, leave := range map[string]bool{"received 0 messages, and no further message for 2s": false, "closed the connection": true} {
		server, port := cmdtest.StartWaiting(t, perftestArgs(hosts.A, "--bandwidth -n 20 -W 2s --sleep"))
		conn, err := cmdtest.Dial(hosts.B.Path(), "10.77.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		x := &perftest.Conversation{Conn: conn, Client: true}
		x.Greet(3)
		x.Meet(func(*perftest.Keys) (perftest.Keys, error) { return keysAt(2), nil })
		if err := x.Prepare(); err != nil {
			t.Error(err)
		}
		if leave {
			conn.Close()
		}
		if code, _ := server.Wait(); code != cli.ExitFailed || !strings.Contains(server.Stderr(), want) {
			t.Errorf("exit code %d, want an error with %q: %s", code, want, server.Stderr())
		}
		conn.Close()
	}
}

func TestPerftestErrors(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	cmdtest.CheckFailure(t, perftestArgs(hosts.B, "--latency 10.77.0.1 -p 1"), cli.ExitFailed, "refused", "ib_send_lat -c UD")
	cmdtest.CheckFailure(t, connectionArgs(hosts.B, "--rc --bandwidth --op read 10.77.0.1 -p 1"), cli.ExitFailed, "check that the server runs there (roced perf --rc, or ib_read_bw -c RC, without -R)")
	server, port := cmdtest.StartWaiting(t, perftestArgs(hosts.A, "--bandwidth -s 1025"))
	cmdtest.CheckFailure(t, perftestArgs(hosts.B, "--bandwidth 10.77.0.1 -p "+port), cli.ExitFailed, "add --sizes 1025 here or omit it there")
	if code, _ := server.Wait(); code != cli.ExitFailed || !strings.Contains(server.Stderr(), "add --sizes 1025 there or omit it here") {
		t.Errorf("exit code %d: %s", code, server.Stderr())
	}
	server, port = cmdtest.StartWaiting(t, perftestArgs(hosts.A, "--bandwidth -g 1"))
	cmdtest.CheckFailure(t, perftestArgs(hosts.B, "--bandwidth -g 0 10.77.0.1 -p "+port), cli.ExitFailed, "one is IPv4, the other IPv6")
	server.Wait()
}

func TestPerftestEndsOnSignal(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, row := range []struct{ args, line string }{
		{"--bandwidth -p 0", "waiting for ib_send_bw -c UD of perftest 6.06"},
		{"--latency -p 0", "waiting for ib_send_lat -c UD of perftest 6.06"},
	} {
		c := cmdtest.Command(t, perftestArgs(hosts.A, row.args)...)
		c.Start(t)
		c.Await(t, row.line)
		c.Process.Signal(unix.SIGINT)
		if code, _ := c.End(t); code != cli.ExitSignal+int(unix.SIGINT) {
			t.Errorf("exit code %d: %s", code, c.Said())
		}
	}
}

// TestPerftestServerThatSends: ib_send_bw -b and --reversed send from the server. Its response then
// does not mean that it received the messages, so nothing is reported.
func TestPerftestServerThatSends(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	listener := cmdtest.ListenOnA(t, hosts)
	defer listener.Close()
	served := make(chan error, 1)
	go func() { served <- sendAsServer(t, hosts, listener) }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	code, stdout, stderr := cmdtest.Run(t, perftestArgs(hosts.B, "--bandwidth -n 20 10.77.0.1 -p "+port)...)
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if code != cli.ExitFailed || !strings.Contains(stderr, "started with -b or --reversed") || strings.Contains(stdout, "Bandwidth") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// sendAsServer acts as the server of ib_send_bw --reversed.
func sendAsServer(t *testing.T, hosts *labtest.PairLab, listener net.Listener) (err error) {
	d, err := card.Open("eth0", hosts.A.Path(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	e, err := card.OpenEndpoint(d, traffic.EndpointOptions(verbs.GID{}, false))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	x := &perftest.Conversation{Conn: conn}
	var to ud.Addr
	for _, step := range []func() error{
		func() error { _, err := x.Greet(3); return err },
		func() error {
			return x.Meet(func(peer *perftest.Keys) (own perftest.Keys, err error) {
				entry, err := d.ChooseGID(0, netip.Addr{}, verbs.GID{})
				own.QPN, own.GID = e.QPN(), entry.GID
				to = peer.Addr()
				return own, err
			})
		},
		x.Prepare,
		func() error {
			_, err := traffic.SendSome(t.Context(), e, to, protocol.Test{Size: d.MTU}, 20, 0, nil)
			return err
		},
		x.AwaitEnd,
		x.End,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	io.Copy(io.Discard, conn)
	return nil
}
