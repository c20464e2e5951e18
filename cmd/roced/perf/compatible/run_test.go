// SPDX-License-Identifier: Apache-2.0

package compatible

import (
	"io"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/perf/options"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/spf13/cobra"
)

// TestProgressIsSeen: a side has no progress line if only its card takes part.
func TestProgressIsSeen(t *testing.T) {
	for _, row := range []struct {
		flags          []string
		client, server bool // whether it has a progress line
	}{
		{[]string{"--perftest", "--bandwidth"}, true, true},
		{[]string{"--rc", "--bandwidth"}, true, true},
		{[]string{"--rc", "--latency"}, true, true},
		{[]string{"--rc", "--bandwidth", "--op=write"}, true, false},
		{[]string{"--rc", "--latency", "--op=write"}, true, true},
		{[]string{"--rc", "--bandwidth", "--op=read"}, true, false},
		{[]string{"--rc", "--latency", "--op=read"}, true, false},
		{[]string{"--rc", "--bandwidth", "--op=atomic"}, true, false},
		{[]string{"--rc", "--latency", "--op=swap"}, true, false},
	} {
		for _, client := range []bool{true, false} {
			want := row.server
			if client {
				want = row.client
			}
			r := newRun(nil, parse(t, row.flags...))
			r.exchange = perftest.Conversation{Client: client}
			line := r.progress()
			if (line != nil) != want {
				t.Errorf("%q, client %t: a line %t", row.flags, client, line != nil)
			}
			line.End()
		}
	}
}

// TestOwnLinkIsSuspected: the error names this side's link only if that dropped packets.
func TestOwnLinkIsSuspected(t *testing.T) {
	for want, changed := range map[string][]card.Counter{
		"": {{Place: "engine", Name: "drop_duplicate", Packets: 7}, {Place: "engine", Name: "drop_interface"}},
		"; this side's link was down, and dropped 5 packets":                       {{Place: "engine", Name: "drop_link_down", Packets: 5}},
		"; this side's interface dropped 1,234 packets: no carrier, a full queue,": {{Place: "engine", Name: "drop_interface", Packets: 1234}},
	} {
		if text := ofLink(changed); !strings.HasPrefix(text, want) || want == "" && text != "" {
			t.Errorf("%q, want %q", text, want)
		}
	}
}

// parse returns the options of a command line.
func parse(t *testing.T, flags ...string) *options.Options {
	t.Helper()
	o := &options.Options{ErrOut: io.Discard}
	cmd := &cobra.Command{}
	o.AddFlags(cmd)
	if err := cmd.ParseFlags(append(flags, "-d", "eth0")); err != nil {
		t.Fatal(err)
	}
	o.TakePerftest(cmd)
	if err := o.Check(cmd); err != nil {
		t.Fatal(err)
	}
	return o
}
