// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// TestRefusedRedirects checks that each packet is counted once if the socket is not bound, and so receives nothing. The
// same happens on a bond, where native XDP runs on the slaves.
func TestRefusedRedirects(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		t.Run(mode.String(), func(t *testing.T) {
			hosts := labtest.Pair(t)
			h, other := newHost(t, untagged()), newHost(t, untagged())
			must(t, h.Uncounted())
			must(t, attachIn(hosts.A, h.Steering, "eth0", mode))
			sendFrames(t, hosts.B, toGroup4().bytes(), toGroup6().bytes(), toGroup4().bytes(),
				with(toGroup4(), func(f *frame) { f.qpn = knownQP }))
			// The last frame is counted after all earlier ones.
			waitFor(t, func() bool { return h.counters(t)[DropGroupQPN] == 1 })
			if got := h.counters(t); got[DropRedirect] != 3 || got[Redirected] != 0 {
				t.Errorf("%s %d, %s %d, want 3 and 0", DropRedirect, got[DropRedirect], Redirected, got[Redirected])
			}
			if got := other.counters(t); got != (Counters{}) {
				t.Errorf("counters of the other device: %v", got)
			}
		})
	}
}

// TestWithoutPerfmon checks that a process without CAP_PERFMON can steer, and that Uncounted reports the missing
// counter.
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
	refusedAnswer   = "refused" // the kernel rejects all programs without CAP_PERFMON
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
