// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
)

// watcher counts the IGMP and MLD messages on a link.
type watcher struct {
	testing.TB
	socket *capture.Socket
	seen   map[capture.MembershipMessage]int
}

func watch(t testing.TB, host *lab.Namespace) *watcher {
	t.Helper()
	return watchLink(t, host, "eth0")
}

func watchLink(t testing.TB, host *lab.Namespace, name string) *watcher {
	t.Helper()
	socket, err := capture.Open(host, name)
	check(t, err)
	t.Cleanup(func() { check(t, socket.Close()) })
	return &watcher{t, socket, map[capture.MembershipMessage]int{}}
}

// count returns the number of messages of a kind for a group, in any version.
func (w *watcher) count(kind capture.Kind, group netip.Addr) (n int) {
	w.Helper()
	w.drain()
	for m, times := range w.seen {
		if m.Kind == kind && m.Group == group {
			n += times
		}
	}
	return n
}

func (w *watcher) versions(kind capture.Kind, group netip.Addr) map[string]bool {
	versions := map[string]bool{}
	for m := range w.seen {
		if m.Kind == kind && m.Group == group {
			versions[m.Protocol] = true
		}
	}
	return versions
}

// awaitQuiet waits until no more messages for a group arrive, and returns the number of reports.
func (w *watcher) awaitQuiet(group netip.Addr) int {
	w.Helper()
	n, since := 0, time.Now()
	eventually(w, "end of the reports", func() bool {
		if now := w.count(capture.Report, group); now != n {
			n, since = now, time.Now()
		}
		return n > 0 && time.Since(since) > 300*time.Millisecond
	})
	return n
}

func (w *watcher) drain() {
	w.Helper()
	for frame, err := range w.socket.Frames() {
		check(w, err)
		for _, m := range capture.MembershipMessages(frame.Data) {
			w.seen[m]++
		}
	}
}
