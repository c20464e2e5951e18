// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

var all = []Capability{NetRaw, NetAdmin, BPF, PerfMon, IPCLock, SysAdmin}

// with runs fn on a thread whose effective set contains only the listed capabilities.
func with(t *testing.T, list []Capability, fn func()) {
	t.Helper()
	needs.Root(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var before [2]unix.CapUserData
	if err := unix.Capget(&header, &before[0]); err != nil {
		t.Fatal(err)
	}
	less := before
	less[0].Effective, less[1].Effective = 0, 0
	for _, c := range list {
		less[c.number/32].Effective |= 1 << (c.number % 32)
	}
	if err := unix.Capset(&header, &less[0]); err != nil {
		t.Fatal(err)
	}
	fn()
	if err := unix.Capset(&header, &before[0]); err != nil {
		panic(err) // the thread would continue without its capabilities
	}
}

// TestHeld: a capability is held if it is in effect, or if CAP_SYS_ADMIN includes it and is in effect.
func TestHeld(t *testing.T) {
	for _, one := range all {
		t.Run(one.String(), func(t *testing.T) {
			with(t, []Capability{one}, func() {
				for _, other := range all {
					want := other == one || one == SysAdmin && (other == BPF || other == PerfMon)
					if other.Held() != want {
						t.Errorf("with %v, %v is held: %v", one, other, !want)
					}
				}
			})
		})
	}
}

func TestMissing(t *testing.T) {
	with(t, []Capability{NetRaw, NetAdmin}, func() {
		if missing := Missing(NetRaw, BPF, NetAdmin, IPCLock); !slices.Equal(missing, []Capability{BPF, IPCLock}) {
			t.Errorf("missing %v", missing)
		}
	})
	if text := fmt.Sprint(BPF); text != "CAP_BPF" {
		t.Errorf("String returns %s", text)
	}
}
