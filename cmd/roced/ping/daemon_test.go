// SPDX-License-Identifier: Apache-2.0

package ping

import (
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
	"github.com/roced/roced/verbs/ud"
)

// TestPingOverADaemon: both sides are unprivileged programs of one service.
func TestPingOverADaemon(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	args := func(rest string) []string {
		return strings.Fields("ping --socket=" + socket + " -n 50 --check " + rest)
	}
	server, port := cmdtest.StartWaiting(t, args("-e -d left"))
	code, stdout, stderr := cmdtest.Run(t, args("-d right -p "+port+" 127.0.0.1")...)
	if code != 0 || stderr != "" {
		t.Fatalf("client: exit code %d: %s", code, stderr)
	}
	cmdtest.CheckSays(t, stdout, "GID ::ffff:10.77.0.1", "\n50 iters in ", "round trip min")
	if code, _ := server.Wait(); code != 0 {
		t.Errorf("server: exit code %d: %s", code, server.Stderr())
	}
	cmdtest.CheckFailure(t, args("127.0.0.1"), cli.ExitFailed, "no device", `"left"`, `"right"`)
	cmdtest.CheckFailure(t, args("-d left --xdp native 127.0.0.1"), cli.ExitUsage, "--xdp cannot be combined with --socket")
	cmdtest.CheckFailure(t, []string{"ping", "--socket=/no/such.sock", "127.0.0.1"}, cli.ExitFailed, "check that it is running")
}

// TestPingByIDOverADaemon: the two sides exchange addresses with connection ids.
func TestPingByIDOverADaemon(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	args := func(rest string) []string { return strings.Fields("ping --cm --socket=" + socket + " " + rest) }
	checkPingByID(t, args("-e -d left"), args("-d right 10.77.0.1"), "GID ::ffff:10.77.0.1")
	checkPingByID(t, args("-e --rc -d left"), args("--rc -d right 10.77.0.1"), "GID ::ffff:10.77.0.1")
	cmdtest.CheckFailure(t, args("-d right --rc -p 7 10.77.0.1"), cli.ExitFailed, "RDMA_CM_EVENT_REJECTED", "no program listens", "check that the server runs there (roced ping --cm --rc -d DEVICE), with --cm and the same --rc on both sides")
	cmdtest.CheckFailure(t, args("-d right -p 7 10.77.0.1"), cli.ExitFailed, "RDMA_CM_EVENT_UNREACHABLE", "status 1", "(roced ping --cm -d DEVICE)")
	cmdtest.CheckFailure(t, args("-d right 10.99.0.1"), cli.ExitFailed, "destination unreachable")
	cmdtest.CheckFailure(t, args("-d right -g 100 10.77.0.1"), cli.ExitFailed, "--gid-index 100")
}

// TestPingOfAConnection: the error of a server of datagrams suggests --rc if its client, such as ibv_rc_pingpong, sends
// packets of a connection.
func TestPingOfAConnection(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	server, port := cmdtest.StartWaiting(t, strings.Fields("ping -W 3s -d left --socket="+socket))
	d, err := card.Connect(t.Context(), socket, "right", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	stream, err := card.OpenStream(d, card.StreamOptions{Type: verbs.QPTypeRC, Size: 1024, RecvDepth: 1, MTU: verbs.MTU1024})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer, err := meet.Introduce(conn, &meet.Terms{}, destination(stream.LocalQP()), 1)
	if err == nil {
		err = stream.Connect(rc.QPAddr{GID: peer.GID, QPN: peer.QPN, PSN: peer.PSN})
	}
	if err == nil {
		err = stream.SendAll(t.Context(), []ud.Message{{Data: make([]byte, 1024)}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := server.Wait(); code != cli.ExitFailed || !strings.Contains(server.Stderr(), "packets of a connection arrived: if the peer uses --rc or ibv_rc_pingpong") {
		t.Errorf("exit code %d: %s", code, server.Stderr())
	}
}

// checkPingByID runs both sides.
func checkPingByID(t *testing.T, server, client []string, says string) {
	t.Helper()
	both := []string{"-n", "50", "--check"}
	background, port := cmdtest.StartWaiting(t, append(server, both...))
	code, stdout, stderr := cmdtest.Run(t, append(append(client, both...), "-p", port)...)
	if code != 0 || stderr != "" {
		t.Fatalf("client: exit code %d: %s", code, stderr)
	}
	cmdtest.CheckSays(t, stdout, says, "\n50 iters in ", "round trip min")
	if code, _ := background.Wait(); code != 0 {
		t.Errorf("server: exit code %d: %s", code, background.Stderr())
	}
}

// TestPingInJSON: stdout has one object, and stderr the other output.
func TestPingInJSON(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	for what, service := range map[string]string{"": "UD", "--rc": "RC"} {
		args := func(rest string) []string {
			return strings.Fields("ping -n 50 --socket=" + socket + " " + what + " " + rest)
		}
		server, port := cmdtest.StartWaiting(t, args("-d left"))
		code, stdout, stderr := cmdtest.Run(t, args("-d right -j -p "+port+" 127.0.0.1")...)
		var r result
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
			t.Fatalf("%v, exit code %d: %s%s", err, code, stdout, stderr)
		}
		if r.Service != service || r.Waiting != "sleep" || r.Sent != 50 || r.Received != 50 || r.Min <= 0 || r.Min > r.P50 || r.P99 > r.Max || r.Elapsed < r.Max || r.Local.Device != "right" {
			t.Errorf("%+v", r)
		}
		if code, _ := server.Wait(); code != 0 {
			t.Errorf("server: exit code %d: %s", code, server.Stderr())
		}
	}
}
