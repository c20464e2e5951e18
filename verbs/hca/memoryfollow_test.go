// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
)

// When a method that changes the network returns, all cards have followed the change: messages sent afterwards arrive.
func TestSentRightAfterAChange(t *testing.T) {
	n, hosts, stations := newHosts(t, 3, 0)
	a, b := stations[0], stations[1]
	ah, moving := a.ah("10.0.0.2"), address("10.0.0.100")
	const count = 50
	for i := range count {
		for _, h := range hosts[:2] {
			h.SetUp(false)
			h.SetUp(true)
		}
		expectMessage(a, ah, b)
		check(t, hosts[1].SetAddresses(hostAddress(1), moving))
		expectMessage(a, a.ah(moving.String()), b)
		check(t, hosts[1].SetAddresses(hostAddress(1)))

		late := newHost(t, n, fmt.Sprint("late", i), []netip.Addr{address("10.0.0.99")})
		expectMessage(a, a.ah("10.0.0.99"), newStation(t, late.Card))
		check(t, late.Close())
	}
	check(t, hosts[0].SetMTU(700))
	if got := a.port().ActiveMTU; got != verbs.MTU512 {
		t.Errorf("active MTU %d", got)
	}
	if drops := a.drops(); len(drops) > 0 {
		t.Errorf("drops %v", drops)
	}
}

// expectMessage sends a message that must arrive.
func expectMessage(from *station, ah *verbs.AH, to *station) {
	from.Helper()
	to.receive(0)
	from.post(from.send(1, ah, to))
	from.wait(1)
	to.wait(1)
}

// Hosts change concurrently, and are added and removed: nothing hangs, and the final state is that of the last change.
func TestChangesSideBySide(t *testing.T) {
	n, hosts, stations := newHosts(t, 3, 0)
	var group sync.WaitGroup
	for i, h := range hosts {
		group.Go(func() {
			for k := range 20 {
				h.SetUp(k%2 == 0)
				_ = h.SetMTU(1500 + k)
				_ = h.SetAddresses(hostAddress(i), hostAddress(100+i))
			}
			h.SetUp(true)
		})
		group.Go(func() {
			for range 10 {
				one, err := addHost(n, fmt.Sprint("passing", i), []netip.Addr{hostAddress(200 + i)})
				if err != nil {
					t.Error(err)
					return
				}
				if err := one.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for i, s := range stations {
		if port := s.port(); port.State != verbs.PortActive || port.InterfaceMTU != 1519 {
			t.Errorf("host %d: %+v", i, port)
		}
		expectMessage(s, s.ah(hostAddress(100+(i+1)%3).String()), stations[(i+1)%3])
	}
}

// A burst much longer than a port's queue arrives completely, whatever the impairment.
func TestImpairedBurst(t *testing.T) {
	for _, row := range []struct {
		impairment memnet.Impairment
		copies     uint64
	}{
		{memnet.Impairment{Delay: time.Millisecond}, 1},
		{memnet.Impairment{Duplication: 1}, 2},
		{memnet.Impairment{Duplication: 1, Delay: time.Millisecond}, 2},
	} {
		n, _, stations := newHosts(t, 2, 0)
		a, b := stations[0], stations[1]
		ah := a.ah("10.0.0.2")
		check(t, n.Impair(row.impairment))
		const count = 5000
		for i := range count {
			a.post(a.send(uint64(i), ah, b, a.piece(0, 10)))
			a.wait(1)
		}
		eventually(t, "all frames", func() bool { return b.device.engine.Counters().Received == count*row.copies })
		if c := n.Counters(); c != (memnet.Counters{Duplicated: count * (row.copies - 1)}) {
			t.Errorf("%+v: %+v", row.impairment, c)
		}
	}
}

// A card in memory logs nothing without a logger.
func TestMemoryIsSilent(t *testing.T) {
	was := slog.Default()
	defer slog.SetDefault(was)
	var text bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	var log logged
	for _, options := range [][]Option{nil, {log.option()}} {
		n := memnet.New(0)
		h := newHost(t, n, "a", []netip.Addr{hostAddress(0)}, options...)
		h.SetUp(false)
		check(t, h.SetMTU(100))
		check(t, n.Close())
	}
	if text.Len() > 0 {
		t.Errorf("the default logger got %q", &text)
	}
	if !log.says("port changed") {
		t.Error("the logger got no message")
	}
}
