// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"github.com/vishvananda/netlink"
)

// TestInterfacesComeAndGo: WatchDevices reports the host's interfaces, with their GUIDs, and those that are added,
// removed and renamed.
func TestInterfacesComeAndGo(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	news := make(chan string, 16)
	guids := make(chan uint64, 16)
	done := make(chan error, 1)
	go func() {
		done <- hosts.A.Do(func() error {
			return WatchDevices(ctx, verbs.DeviceClient{
				Add:    func(d verbs.Device) { news <- "+" + d.Name; guids <- d.GUID },
				Remove: func(d verbs.Device) { news <- "-" + d.Name },
			})
		})
	}()
	expect := func(want ...string) {
		t.Helper()
		for _, w := range want {
			select {
			case got := <-news:
				if got != w {
					t.Fatalf("got %s, want %s", got, w)
				}
			case <-guard(t).Done():
				t.Fatalf("got no notification, want %s", w)
			}
		}
	}
	expect("+eth0")
	card := open(t, hosts.A, WithStateDir(t.TempDir()))
	attr, err := provider.Do(card, provider.QueryDevice, provider.None{})
	check(t, err)
	if got := <-guids; got != attr.NodeGUID {
		t.Errorf("got GUID %x, want the card's %x", got, attr.NodeGUID)
	}
	nl := hosts.A.Netlink()
	for range 3 {
		more := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "more0"}}
		check(t, nl.LinkAdd(more))
		expect("+more0")
		check(t, nl.LinkSetName(more, "other0"))
		expect("-more0", "+other0")
		check(t, nl.LinkDel(more))
		expect("-other0")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	expect("-eth0")
}
