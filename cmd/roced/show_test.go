package main

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
)

func TestShowGID(t *testing.T) {
	hosts := labtest.Pair(t)
	args := []string{"show", "gid", "-d", "eth0", "--netns", hosts.A.Path()}
	receiver := listen(t, hosts.A, testGroup4) // nothing is opened: it goes beside another
	defer receiver.end(t)
	code, stdout, stderr := roced(t, args...)
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
	_, stdout, _ = roced(t, append(args, "-j")...)
	var lines []gidLine
	if err := json.Unmarshal([]byte(stdout), &lines); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(lines, gidLine{0, "::ffff:10.77.0.1", "RoCE v2", "IPv4", "eth0", true}) || !slices.Contains(lines, gidLine{1, "fd77::1", "RoCE v2", "IPv6", "eth0", false}) {
		t.Errorf("%+v", lines)
	}
}

func TestShowGIDErrors(t *testing.T) {
	hosts := labtest.Pair(t)
	checkFailure(t, []string{"show", "gid", "-d", "nope", "--netns", hosts.A.Path()}, exitFailed, "nope", "ip link")
	checkFailure(t, []string{"show", "gid", "-d", "eth0", "--netns", "no-such-namespace"}, exitFailed, "ip netns list")
}

// TestShowGIDAgreesWithADevice: each line that is shown is one that -g takes.
func TestShowGIDAgreesWithADevice(t *testing.T) {
	hosts := labtest.Pair(t)
	removeAddress(t, hosts.A, "10.77.0.1/24")
	d, err := openDevice("eth0", hosts.A.Path(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	want, err := d.GIDs(port)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, stdout, _ := roced(t, "show", "gid", "-d", "eth0", "--netns", hosts.A.Path(), "-j")
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

func TestXDPMode(t *testing.T) {
	hosts := labtest.Pair(t)
	for args, want := range map[string]string{"--xdp generic": "XDP generic", "--xdp native --copy": "XDP native, AF_XDP copy"} {
		receiver := start(t, mcastArgs(hosts.A, testGroup4+" "+args)...)
		checkSays(t, receiver.await(t, listening), want)
		receiver.end(t)
	}
	checkFailure(t, mcastArgs(hosts.A, testGroup4+" --zerocopy"), exitFailed, "zero-copy")
}
