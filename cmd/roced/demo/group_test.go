// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

func newGroupDemo(out io.Writer, messages int) *groupDemo {
	return &groupDemo{demo: &demo{out: out, log: slog.New(slog.DiscardHandler), messages: messages}}
}

// checkGroups checks the table of groups.
func checkGroups(t *testing.T, stdout string, messages string) {
	t.Helper()
	for _, group := range []struct{ address, protocol string }{{"239.77.0.7", "IGMPv"}, {"ff05::77:7", "MLDv"}} {
		_, table, found := strings.Cut(stdout, "  "+group.address)
		lines := strings.SplitN(table, "\n", 6)
		if !found || len(lines) < 6 {
			t.Fatalf("no table of %s", group.address)
		}
		for i, want := range []string{
			"sender 0xQPN " + messages + " - " + messages + " nothing",
			"receiver 0xQPN - " + messages + " " + messages + " " + group.protocol,
			"0xQPN - " + messages,
			"0xQPN - " + messages,
			"outsider 0xQPN - 0 0 nothing",
		} {
			if got := cmdtest.AnyQPN(strings.Join(strings.Fields(lines[i]), " ")); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %q, want %q", group.address, got, want)
			}
		}
		if !strings.Contains(lines[1], " report") || !strings.Contains(lines[1], "1 leave") {
			t.Errorf("%s: got %q, want reports and one leave", group.address, lines[1])
		}
	}
}

// cancelAt is a writer that cancels a context when a text is written.
type cancelAt struct {
	text   string
	cancel func()
}

func (c cancelAt) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.text)) {
		c.cancel()
	}
	return len(p), nil
}

func TestGroupDemoIsStopped(t *testing.T) {
	needs.Root(t)
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	g := newGroupDemo(cancelAt{"to each group", func() { cancel(cause) }}, 1<<30)
	if err := g.inLab(ctx, g.show); !errors.Is(err, cause) {
		t.Errorf("%v, want the cause", err)
	}
	checkNothingLeft(t)
}

func TestGroupDemoIsStoppedWhileBuilding(t *testing.T) {
	needs.Root(t)
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := newSwitchLab(ctx, slog.New(slog.DiscardHandler)); !errors.Is(err, cause) {
		t.Errorf("newSwitchLab: %v, want the cause", err)
	}
	checkNothingLeft(t)
}

func TestGroupDemoPanics(t *testing.T) {
	needs.Root(t)
	g := newGroupDemo(io.Discard, 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		g.inLab(t.Context(), func(context.Context) error { panic("in the demo") })
	}()
	checkNothingLeft(t)
}

// TestGroupRunCheck: the check rejects each kind of wrong traffic.
func TestGroupRunCheck(t *testing.T) {
	group := netip.MustParseAddr("239.77.0.7")
	for _, row := range []struct {
		want  string
		spoil func(r *groupRun, sender, receiver, outsider *traffic)
	}{
		{"", func(*groupRun, *traffic, *traffic, *traffic) {}},
		{"the send-only member sent IGMPv2 1 report, 0 leaves", func(_ *groupRun, s, _, _ *traffic) { s.reports, s.protocol = 1, "IGMPv2" }},
		{"the send-only member", func(_ *groupRun, s, _, _ *traffic) { s.leaves = 1 }},
		{"the full member", func(_ *groupRun, _, r, _ *traffic) { r.reports = 0 }},
		{"the full member", func(_ *groupRun, _, r, _ *traffic) { r.leaves = 0 }},
		{"outside the group received 1 messages on its wire", func(_ *groupRun, _, _, o *traffic) { o.messages = 1 }},
		{"outside the group", func(_ *groupRun, _, _, o *traffic) { o.reports = 1 }},
		{"1 in its queue pair", func(run *groupRun, _, _, _ *traffic) { run.unexpected = 1 }},
		{"6 messages on the sender's", func(_ *groupRun, s, _, _ *traffic) { s.messages++ }},
		{"4 on the receiver's", func(_ *groupRun, _, r, _ *traffic) { r.messages-- }},
	} {
		sender, receiver, outsider := &traffic{messages: 5}, &traffic{messages: 5, reports: 1, leaves: 1}, &traffic{}
		seen := func(seen *traffic) *station {
			return &station{watch: &watch{groups: map[netip.Addr]*traffic{group: seen}}}
		}
		r := &groupRun{group: group, messages: 5, lab: &switchLab{sender: seen(sender), receiver: seen(receiver), outsider: seen(outsider)}}
		row.spoil(r, sender, receiver, outsider)
		err := r.check()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, want %q", err, row.want)
		}
	}
}

// TestWatchFails: a watch that may have missed frames returns an error.
func TestWatchFails(t *testing.T) {
	w, err := newWatch(labtest.Pair(t).A, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.update(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := w.update(); !errors.Is(err, unix.EBADF) {
		t.Errorf("update of a closed watch: %v", err)
	}
}
