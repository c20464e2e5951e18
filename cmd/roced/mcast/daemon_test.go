// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
)

// TestMcastOverADaemon: a receiver and a sender are unprivileged programs of one service.
func TestMcastOverADaemon(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	args := func(rest string) []string { return strings.Fields("mcast --socket=" + socket + " 239.1.2.3 " + rest) }
	receiver := cmdtest.Start(t, args("-d left --count 3")...)
	receiver.Await(t, listening)
	code, stdout, stderr := cmdtest.Run(t, args("-d right --send --send-only -n 3")...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	cmdtest.CheckSays(t, stdout, "sending from 10.77.0.2, as a send-only member", "sent 3 messages of 100 bytes", "dropped: none")
	code, got := receiver.Wait()
	if code != 0 {
		t.Errorf("exit code %d: %s", code, receiver.Stderr())
	}
	cmdtest.CheckSays(t, got, "received 3 messages", "dropped: none")
	cmdtest.CheckFailure(t, args("-d left --membership socket"), cli.ExitUsage, "--membership cannot be combined with --socket")
}

// TestMcastByIDOverADaemon: both are members by connection ids.
func TestMcastByIDOverADaemon(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	args := func(rest string) []string {
		return strings.Fields("mcast --cm --socket=" + socket + " 239.1.2.3 " + rest)
	}
	receiver := cmdtest.Start(t, args("-d left --count 3")...)
	receiver.Await(t, listening)
	for _, rest := range []string{"-d right --send --send-only -n 2", "-d right --send -n 1"} {
		code, stdout, stderr := cmdtest.Run(t, args(rest)...)
		if code != 0 || stderr != "" {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		cmdtest.CheckSays(t, stdout, "dropped: none")
	}
	code, got := receiver.Wait()
	if code != 0 {
		t.Errorf("exit code %d: %s", code, receiver.Stderr())
	}
	cmdtest.CheckSays(t, got, "received 3 messages", "dropped: none")
}
