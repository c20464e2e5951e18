// SPDX-License-Identifier: Apache-2.0

package show

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab/labtest"
)

func TestShowGID(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	args := []string{"show", "gid", "-d", "eth0", "--netns", hosts.A.Path()}
	other, err := card.Open("eth0", hosts.A.Path(), slog.New(slog.DiscardHandler)) // show gid opens no card, so another card may exist
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	code, stdout, stderr := cmdtest.Run(t, args...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	rows := strings.Split(stdout, "\n")
	for i, want := range []string{
		"INDEX GID TYPE IP NETDEV DEFAULT",
		"0 ::ffff:10.77.0.1 RoCE v2 IPv4 eth0 default",
		"1 fd77::1 RoCE v2 IPv6 eth0",
	} {
		if got := strings.Join(strings.Fields(rows[i]), " "); got != want {
			t.Errorf("line %d: %q, want %q", i, got, want)
		}
	}
	_, stdout, _ = cmdtest.Run(t, append(args, "-j")...)
	var lines []gidLine
	if err := json.Unmarshal([]byte(stdout), &lines); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(lines, gidLine{0, "::ffff:10.77.0.1", "RoCE v2", "IPv4", "eth0", true}) || !slices.Contains(lines, gidLine{1, "fd77::1", "RoCE v2", "IPv6", "eth0", false}) {
		t.Errorf("%+v", lines)
	}
}

// TestShowGIDOfALoopback: lo, on which no device can be opened, is listed too.
func TestShowGIDOfALoopback(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	code, stdout, stderr := cmdtest.Run(t, "show", "gid", "-d", "lo", "--netns", hosts.A.Path(), "-j")
	if code != 0 || !strings.HasPrefix(stdout, "[") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

func TestShowGIDErrors(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	cmdtest.CheckFailure(t, []string{"show", "gid", "-d", "nope", "--netns", hosts.A.Path()}, cli.ExitFailed, "nope", "ip link")
	cmdtest.CheckFailure(t, []string{"show", "gid", "-d", "eth0", "--netns", "no-such-namespace"}, cli.ExitFailed, "ip netns list")
}

// TestShowGIDAgreesWithADevice: the printed table equals that of a device, so each index is valid for -g.
func TestShowGIDAgreesWithADevice(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	cmdtest.RemoveAddress(t, hosts.A, "10.77.0.1/24")
	d, err := card.Open("eth0", hosts.A.Path(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	want, err := d.QueryGIDTable(card.Port)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, stdout, _ := cmdtest.Run(t, "show", "gid", "-d", "eth0", "--netns", hosts.A.Path(), "-j")
	var lines []gidLine
	if err := json.Unmarshal([]byte(stdout), &lines); err != nil || len(lines) != len(want) {
		t.Fatalf("%+v, want %+v: %v", lines, want, err)
	}
	for i, entry := range want {
		if lines[i] != newGIDLine(entry) {
			t.Errorf("%+v, want %+v", lines[i], entry)
		}
	}
}
