// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
)

// told is a client that records the reports of devices.
func told() (news chan string, c verbs.DeviceClient) {
	news = make(chan string, 16)
	return news, verbs.DeviceClient{
		Add:    func(d verbs.Device) { news <- "+" + d.Name },
		Remove: func(d verbs.Device) { news <- "-" + d.Name },
	}
}

func expectNews(t *testing.T, news chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-news:
			if got != w {
				t.Fatalf("%s, want %s", got, w)
			}
		case <-guard(t).Done():
			t.Fatalf("no news, want %s", w)
		}
	}
}

// TestDevicesComeAndGo: a watcher gets the existing devices, additions and removals, and at the end the removal of all.
func TestDevicesComeAndGo(t *testing.T) {
	t.Parallel()
	a, b, err := hca.OpenPair(addressesA, addressesB)
	check(t, err)
	t.Cleanup(func() { check(t, errors.Join(a.Close(), b.Close())) })
	d := startDaemon(t, Config{Devices: []Source{a}})
	ctx, cancel := context.WithCancel(context.Background())
	news, watcher := told()
	done := make(chan error, 1)
	go func() { done <- client.WatchDevices(ctx, d.path, watcher) }()
	expectNews(t, news, "+"+a.Name())
	list, err := client.ListDevices(ctx, d.path)
	check(t, err)
	attr, err := provider.Do(a, provider.QueryDevice, provider.None{})
	check(t, err)
	if len(list) != 1 || list[0] != (verbs.Device{Name: a.Name(), Index: -1, GUID: attr.NodeGUID}) {
		t.Errorf("%+v", list)
	}
	for range 10 {
		check(t, d.SetDevices(a, b))
		expectNews(t, news, "+"+b.Name())
		check(t, d.SetDevices(b))
		expectNews(t, news, "-"+a.Name())
		check(t, d.SetDevices(a))
		expectNews(t, news, "-"+b.Name(), "+"+a.Name())
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	expectNews(t, news, "-"+a.Name())
}

// TestWatchEndsWithTheService.
func TestWatchEndsWithTheService(t *testing.T) {
	t.Parallel()
	a, b, err := hca.OpenPair(addressesA, addressesB)
	check(t, err)
	t.Cleanup(func() { check(t, errors.Join(a.Close(), b.Close())) })
	d := startDaemon(t, Config{Devices: []Source{a}})
	news, watcher := told()
	done := make(chan error, 1)
	go func() { done <- client.WatchDevices(context.Background(), d.path, watcher) }()
	expectNews(t, news, "+"+a.Name())
	check(t, d.Close())
	expectNews(t, news, "-"+a.Name())
	if err := <-done; !errors.Is(err, verbs.ErrHost) {
		t.Error(err)
	}
}
