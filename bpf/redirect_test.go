// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// TestRefusedRedirects: a socket that is bound to nothing takes nothing, as on a bond, where
// native XDP runs on the slaves. Each packet is in one counter all the same.
func TestRefusedRedirects(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		t.Run(mode.String(), func(t *testing.T) {
			hosts := labtest.Pair(t)
			h, other := newHost(t, untagged()), newHost(t, untagged())
			must(t, h.Uncounted())
			must(t, attachIn(hosts.A, h.Steering, "eth0", mode))
			sendFrames(t, hosts.B, toGroup4().bytes(), toGroup6().bytes(), toGroup4().bytes(),
				with(toGroup4(), func(f *frame) { f.qpn = knownQP }))
			// The last frame is counted when all before it are.
			waitFor(t, func() bool { return h.counters(t)[DropGroupQPN] == 1 })
			if got := h.counters(t); got[DropRedirect] != 3 || got[Redirected] != 0 {
				t.Errorf("%s %d, %s %d, want 3 and 0", DropRedirect, got[DropRedirect], Redirected, got[Redirected])
			}
			if got := other.counters(t); got != (Counters{}) {
				t.Errorf("another device's: %v", got)
			}
		})
	}
}

// TestWithoutPerfmon: a process without CAP_PERFMON steers, and reports that it does not count.
func TestWithoutPerfmon(t *testing.T) {
	needs.Root(t)
	ns := labtest.New(t, "roced-bpf")
	if got := runChild(t, ns, "uncounted", unix.CAP_BPF, unix.CAP_NET_ADMIN); got != uncountedAnswer && got != refusedAnswer {
		t.Errorf("%s", got)
	}
	if got := runChild(t, ns, "uncounted", unix.CAP_BPF, unix.CAP_NET_ADMIN, unix.CAP_PERFMON); got != countedAnswer {
		t.Errorf("%s", got)
	}
}

const (
	countedAnswer   = "counted"
	uncountedAnswer = "uncounted"
	refusedAnswer   = "refused" // a kernel that takes no program at all without CAP_PERFMON
)

func uncounted() string {
	s, err := Load(Config{})
	if err != nil {
		return refusedAnswer
	}
	defer s.Close()
	if s.Uncounted() != nil {
		return uncountedAnswer
	}
	return countedAnswer
}
