// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
)

// Frames that wait while the link is down are not sent when it is up again. They are counted, their slots become free,
// and later frames arrive.
func TestTakeBack(t *testing.T) {
	const stale, fresh = 100, 300
	hosts := labtest.Pair(t)
	a, b := mustOpen(t, hosts.A, Config{TxFrames: 512}), mustOpen(t, hosts.B, Config{})
	steer(t, hosts.B, b)
	link, err := hosts.A.Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := hosts.A.Netlink().LinkSetDown(link); err != nil {
			t.Fatal(err)
		}
		for range stale {
			r := mustReserve(t, a)
			testFrame(r.Bytes()[:60], 0xFFFF)
			a.Submit(r, 60)
		}
		a.TakeBack()
		a.TakeBack() // no effect
		if n := a.TakenBack(); n != 0 {
			t.Errorf("%d frames were reported before the kernel has skipped them", n)
		}
		if err := hosts.A.Netlink().LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
		sendAll(t, a, 0, fresh, 60)
		collect(t, b, fresh, inOrder(t, 0, 60))
		if n := a.TakenBack(); n != stale {
			t.Errorf("%d frames taken back, want %d", n, stale)
		}
		a.reclaim()
		if n := len(a.free); n != 512 {
			t.Errorf("%d slots are free, want all 512", n)
		}
	}
}

// While the link is up no frames are taken back.
func TestTakeBackOfASocketThatSends(t *testing.T) {
	hosts := labtest.Pair(t)
	a, b := mustOpen(t, hosts.A, Config{}), mustOpen(t, hosts.B, Config{})
	steer(t, hosts.B, b)
	r := mustReserve(t, a)
	testFrame(r.Bytes()[:60], 0)
	a.Submit(r, 60)
	a.TakeBack()
	flushAll(t, a)
	collect(t, b, 1, inOrder(t, 0, 60))
	if n := a.TakenBack(); n != 0 {
		t.Errorf("%d frames taken back", n)
	}
}
