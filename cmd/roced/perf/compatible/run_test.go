package compatible

import (
	"io"
	"testing"

	"github.com/roced/roced/cmd/roced/perf/options"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/spf13/cobra"
)

// TestProgressIsSeen: a side whose card does all by itself has no line, which would count nothing.
func TestProgressIsSeen(t *testing.T) {
	for _, row := range []struct {
		flags          []string
		client, server bool // have a line
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

// parse gives the options of a command line.
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
