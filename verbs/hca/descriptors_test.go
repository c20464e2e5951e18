// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"net/netip"
	"os"
	"testing"

	"github.com/roced/roced/verbs/hca/memnet"
	"golang.org/x/sys/unix"
)

// Without enough descriptors New fails, whichever descriptor is the first to lack, and leaks none. The card's place on
// the network is free again. Only cards for programs of other processes have descriptors there.
func TestOpenWithoutDescriptors(t *testing.T) {
	for _, workers := range []int{1, 3} {
		n := memnet.New(1)
		refused := 0
		for more := uint64(0); ; more++ {
			before := descriptorsInUse(t)
			var card *Card
			var err error
			belowDescriptor(t, more, func() {
				var host *memnet.Host
				if host, err = n.AddHost("one", netip.MustParseAddr("10.0.0.1")); err == nil {
					card, err = New(host, WithWorkers(workers), WithoutInline())
				}
			})
			if err == nil {
				check(t, card.Close())
			} else if refused++; !errors.Is(err, unix.EMFILE) {
				t.Fatalf("%d workers with %d descriptors: %v", workers, more, err)
			}
			if now := descriptorsInUse(t); now != before {
				t.Fatalf("%d workers with %d descriptors: got %d open descriptors, want %d", workers, more, now, before)
			}
			if err == nil {
				break
			}
		}
		if refused < 3 {
			t.Errorf("%d workers: New failed %d times", workers, refused)
		}
		check(t, n.Close())
	}
}

func descriptorsInUse(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	return len(list)
}

// belowDescriptor runs a function while only more descriptors can be opened.
func belowDescriptor(t *testing.T, more uint64, run func()) {
	t.Helper()
	var was unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	next, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	check(t, err)
	check(t, unix.Close(next))
	defer func() { check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next) + more, Max: was.Max}))
	run()
}
