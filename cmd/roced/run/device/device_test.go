// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// kept is a running device with notifications of its state changes.
type kept struct {
	*Device
	news  chan struct{}
	stop  func()
	first chan error // result of the first attempt
}

func keep(t *testing.T, open Open) *kept {
	t.Helper()
	k := &kept{news: make(chan struct{}, 1), first: make(chan error, 1)}
	k.Device = newDevice(config.NewDevice("eth0"), open, slog.New(slog.DiscardHandler), func() {
		select {
		case k.news <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.Run(ctx, func(err error) { k.first <- err })
	}()
	k.stop = func() { cancel(); <-ended }
	t.Cleanup(k.stop)
	return k
}

// await waits for a state whose text contains text.
func (k *kept) await(t *testing.T, text string) State {
	t.Helper()
	for {
		if s := k.State(); strings.Contains(s.Text, text) {
			return s
		}
		<-k.news
	}
}

// TestAttemptsUntilItOpens: the state and NewSession report each failed attempt.
func TestAttemptsUntilItOpens(t *testing.T) {
	network := memnet.New(1)
	defer network.Close()
	attempts := 0
	d := keep(t, func() (*hca.Card, error) {
		if attempts++; attempts < 3 {
			return nil, fmt.Errorf("attempt %d: %w", attempts, unix.ENODEV)
		}
		host, err := network.AddHost("eth0", netip.MustParseAddr("10.0.0.1"))
		if err != nil {
			return nil, err
		}
		return hca.New(host)
	})
	<-d.first
	if _, err := d.NewSession(hca.SessionConfig{}); !errors.Is(err, verbs.ErrDeviceFatal) || !errors.Is(err, unix.ENODEV) {
		t.Errorf("a session without a card: %v", err)
	}
	d.LinkChanged()
	state := d.await(t, "active, 10.0.0.1, RDMA MTU 4096")
	if !state.Open || !state.Active || d.Opens() != 1 {
		t.Errorf("%+v, opened %d times", state, d.Opens())
	}
	session, err := d.NewSession(hca.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if counters, err := d.Counters(); err != nil || len(counters) == 0 {
		t.Errorf("%v, %v", counters, err)
	}
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	d.stop()
	if !errors.Is(session.Err(), verbs.ErrClosed) || d.State().Open {
		t.Errorf("the card is still open after the device ended: %v, %+v", session.Err(), d.State())
	}
	if _, err := d.Counters(); err == nil {
		t.Error("got counters without a card")
	}
}

// TestMissingCapabilities: the device does not retry without capabilities.
func TestMissingCapabilities(t *testing.T) {
	d := keep(t, func() (*hca.Card, error) { return nil, unix.EPERM })
	if err := <-d.first; !errors.Is(err, unix.EPERM) {
		t.Errorf("%v", err)
	}
	d.stop()
}

// TestInterfaceReturns: the device is reopened automatically when its interface returns. Earlier sessions have ended.
func TestInterfaceReturns(t *testing.T) {
	hosts := labtest.Pair(t)
	stateDir := t.TempDir()
	d := keep(t, func() (*hca.Card, error) {
		return hca.Open("eth0", append(options(config.NewDevice("eth0"), stateDir, slog.New(slog.DiscardHandler)), hca.InNamespace(hosts.A.Path()))...)
	})
	d.await(t, "eth0 active, 10.77.0.1, RDMA MTU 1024")
	session, err := d.NewSession(hca.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	handle := hosts.A.Netlink()
	link, err := handle.LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	if err := handle.LinkDel(link); err != nil {
		t.Fatal(err)
	}
	d.await(t, "no interface")
	if err := session.Err(); err == nil {
		t.Error("the session continues")
	}
	again := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "peer"}
	if err := handle.LinkAdd(again); err != nil {
		t.Fatal(err)
	}
	if err := handle.LinkSetUp(again); err != nil {
		t.Fatal(err)
	}
	d.LinkChanged()
	d.await(t, "eth0 down, no address")
	if d.Opens() != 2 {
		t.Errorf("opened %d times", d.Opens())
	}
	d.stop()
}

// TestOptions: values of the configuration correspond to those of package hca.
func TestOptions(t *testing.T) {
	for bytes, want := range map[int]verbs.MTU{256: verbs.MTU256, 512: verbs.MTU512, 1024: verbs.MTU1024, 2048: verbs.MTU2048, 4096: verbs.MTU4096} {
		if got := mtu(bytes); got != want || got.Bytes() != bytes {
			t.Errorf("%d bytes: %v, want %v", bytes, got, want)
		}
	}
}
