// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"testing"

	"github.com/cilium/ebpf"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
)

// TestClearRings checks that packets in a queue without a ring are dropped, and that the ring can be set again.
func TestClearRings(t *testing.T) {
	h := newHost(t, withoutRing())
	for range 2 {
		must(t, h.SetRing(0, xskSocket(t)))
		if got := h.run(t, ebpf.RunOptions{Data: toOwn4().bytes()}); got != Redirected {
			t.Errorf("%s, want %s", got, Redirected)
		}
		must(t, h.ClearRings(0, 1))
		must(t, h.ClearRings(0))
		if got := h.run(t, ebpf.RunOptions{Data: toOwn4().bytes()}); got != DropNoRing {
			t.Errorf("%s, want %s", got, DropNoRing)
		}
	}
}

// TestRenew checks that Renew replaces the program by its copy repeatedly, and that it remains attached with its
// tables.
func TestRenew(t *testing.T) {
	hosts := labtest.Pair(t, lab.WithQueues(2))
	s := load(t, Config{Renewable: true})
	must(t, s.Renew())
	must(t, attachIn(hosts.A, s, "eth0", Native))
	for range 3 {
		before := attachedXDP(t, hosts.A, "eth0").ProgId
		must(t, s.Renew())
		must(t, s.Check())
		if now := attachedXDP(t, hosts.A, "eth0").ProgId; now == before || now != programID(t, s.objs.RocedSteer) {
			t.Errorf("program %d, before %d", now, before)
		}
	}
	plain := load(t, Config{})
	must(t, attachIn(hosts.B, plain, "eth0", Native))
	before := attachedXDP(t, hosts.B, "eth0").ProgId
	must(t, plain.Renew())
	if now := attachedXDP(t, hosts.B, "eth0").ProgId; now != before {
		t.Error("a program without Renewable was replaced")
	}
}
