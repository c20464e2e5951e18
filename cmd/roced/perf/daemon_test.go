// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/perf/report"
)

// TestPerfOverADaemon: both sides use devices of one service, and the report says so.
func TestPerfOverADaemon(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	args := func(rest string) []string { return strings.Fields("perf --socket=" + socket + " " + rest) }
	server := cmdtest.Start(t, args("-d left -p 0")...)
	_, address, _ := strings.Cut(server.Await(t, "waiting for clients on "), "clients on ")
	address, _, _ = strings.Cut(address, ": ")
	port := address[strings.LastIndex(address, ":")+1:]
	code, stdout, stderr := cmdtest.Run(t, args("-d right --duration 50ms -n 100 -s 64 --json -p "+port+" 127.0.0.1")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if !r.Client.Daemon || !r.Server.Daemon || r.Client.Device != "right" || r.Server.Device != "left" {
		t.Errorf("between %+v and %+v", r.Client, r.Server)
	}
	if r.Waiting != "sleep" {
		t.Errorf("both sides %s, want sleep: the service needs their processors", r.Waiting)
	}
	spun := measured(t, args("-d right --latency -n 10 -s 64 --spin -p "+port+" 127.0.0.1"))
	if spun.Waiting != "spin" {
		t.Errorf("both sides %s, want spin", spun.Waiting)
	}
	server.End(t)
	cmdtest.CheckFailure(t, args("-d right --spin --sleep 127.0.0.1"), cli.ExitUsage, "--sleep and --spin cannot be combined")
}

// TestConnectionsOverADaemon: measurements over connections work with the service's card, which writes into the memory
// of the programs.
func TestConnectionsOverADaemon(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	for _, what := range []string{"--bandwidth --op send -q 3", "--bandwidth --op write", "--latency --op write", "--latency --op atomic"} {
		args := func(rest string) []string {
			return strings.Fields("perf --rc -n 100 -s 8 --socket=" + socket + " " + what + " " + rest)
		}
		server, port := cmdtest.StartWaiting(t, args("-d left"))
		r := measured(t, args("-d right 127.0.0.1 -p "+port))
		if len(r.Bandwidth)+len(r.Latency) != 1 || !r.Client.Daemon {
			t.Errorf("%s: %+v", what, r)
		}
		if code, _ := server.Wait(); code != 0 {
			t.Errorf("%s: server: exit code %d: %s", what, code, server.Stderr())
		}
	}
}
