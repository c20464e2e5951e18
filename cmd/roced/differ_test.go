// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
)

// TestProgramsDiffer: both sides report at once which command the peer runs, and which flag is
// needed.
func TestProgramsDiffer(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	args := func(command string) []string { return append(strings.Fields(command), "--socket="+socket) }
	const rc = "roced perf --rc --bandwidth --op send --sizes 65536 --qps 1"
	for _, row := range []struct{ server, client, wantServer, wantClient string }{
		{"perf -d left --once", "perf --rc --bandwidth", "the peer runs " + rc + ", this side runs roced perf: add --rc --bandwidth", "the peer runs roced perf, this side runs " + rc + ": add --rc --bandwidth --op send --sizes 65536 --qps 1 there"},
		{"perf -d left --rc --bandwidth", "perf", "add --rc --bandwidth --op send --sizes 65536 --qps 1 there", "the peer runs " + rc + ", this side runs roced perf: add --rc --bandwidth"},
		{"perf -d left --rc --bandwidth", "perf --uc --bandwidth", "add --uc here or omit it there; add --rc there", "add --rc here or omit it there; add --uc there"},
		{"perf -d left --rc --bandwidth", "perf --rc --latency", "add --latency here", "add --bandwidth here"},
		{"perf -d left --rc --bandwidth", "perf --rc --bandwidth --op write", "the same --op", "the same --op"},
		{"perf -d left --rc --bandwidth -s 64k", "perf --rc --bandwidth -s 4k", "the same --sizes", "the peer runs " + rc + ","},
		{"perf -d left --rc --bandwidth", "perf --rc --bandwidth -q 2", "the same --qps", "the same --qps"},
		{"perf -d left --perftest --bandwidth", "perf --rc --bandwidth", "add --rc", "add --perftest here"},
		{"ping -d left --rc", "perf --rc --bandwidth", "start roced ping --rc", "start roced perf --rc --bandwidth"},
		{"ping -d left", "perf", "the peer runs roced perf, this side runs roced ping", "the peer runs roced ping"},
	} {
		server, port := cmdtest.StartWaiting(t, args(row.server))
		cmdtest.CheckFailure(t, append(args(row.client), "-d", "right", "-p", port, "127.0.0.1"), cli.ExitFailed, row.wantClient)
		if code, _ := server.Wait(); code != cli.ExitFailed || !strings.Contains(server.Stderr(), row.wantServer) {
			t.Errorf("%s: exit code %d, want an error with %q: %s", row.server, code, row.wantServer, server.Stderr())
		}
	}
}
