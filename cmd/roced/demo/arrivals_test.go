// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
)

// TestArrivals: late messages count as received, even if they counted as lost before. A message that equals no pending
// one is an error.
func TestArrivals(t *testing.T) {
	for _, row := range []struct {
		name                           string
		sent, giveUp                   int   // numbers of messages; the first giveUp of them count as lost
		arrive                         []int // their numbers
		received, late, lost, inFlight int
	}{
		{"in order", 3, 0, []int{0, 1, 2}, 3, 0, 0, 0},
		{"one overtakes", 3, 0, []int{1, 0, 2}, 3, 1, 0, 0},
		{"one comes last", 3, 0, []int{1, 2, 0}, 3, 1, 0, 0},
		{"one is missing", 3, 0, []int{0, 2}, 2, 0, 0, 1},
		{"some are lost", 5, 2, []int{2, 3, 4}, 3, 0, 2, 0},
		{"some come after all", 5, 2, []int{3, 0, 4}, 3, 1, 1, 1},
	} {
		a := &arrivals{}
		for i := range row.sent {
			if a.expect(uint32(i)); i == row.giveUp-1 {
				a.lost = len(a.pending)
			}
		}
		for _, number := range row.arrive {
			if err := a.match(equals(number)); err != nil {
				t.Errorf("%s: %v", row.name, err)
			}
		}
		if a.received != row.received || a.late != row.late || a.lost != row.lost || a.inFlight() != row.inFlight {
			t.Errorf("%s: %d received, %d late, %d lost, %d in flight; want %d, %d, %d, %d", row.name,
				a.received, a.late, a.lost, a.inFlight(), row.received, row.late, row.lost, row.inFlight)
		}
		if err := a.match(equals(row.sent)); err == nil {
			t.Errorf("%s: accepted a message that was not sent", row.name)
		}
	}
}

// equals returns a comparison that accepts only the given number.
func equals(number int) func(uint32) error {
	return func(other uint32) error {
		if int(other) != number {
			return errors.New("different number")
		}
		return nil
	}
}

// impairedHosts are two hosts on an in-memory network that impairs packets.
func impairedHosts(t *testing.T, impairment memnet.Impairment) []*host {
	t.Helper()
	network := memnet.New(57)
	t.Cleanup(func() { network.Close() })
	var hosts []*host
	for i, name := range []string{"left", "right"} {
		on, err := network.AddHost(name, netip.MustParseAddr([]string{"10.77.0.1", "10.77.0.2"}[i]))
		if err != nil {
			t.Fatal(err)
		}
		opened, err := hca.New(on)
		if err != nil {
			t.Fatal(err)
		}
		d, err := card.Take(opened, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		e, err := card.OpenEndpoint(d, endpointOptions(card.TestQKey))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		hosts = append(hosts, &host{name: name, Device: d, Endpoint: e})
	}
	if err := network.Impair(impairment); err != nil {
		t.Fatal(err)
	}
	return hosts
}

// TestStreamOverABadNetwork: a stream with lost and reordered messages succeeds and counts them.
func TestStreamOverABadNetwork(t *testing.T) {
	hosts := impairedHosts(t, memnet.Impairment{Loss: 0.02, Reordering: 0.05})
	for _, size := range []int{0, 1, 64} {
		s := &stream{from: hosts[0], to: hosts[1], size: size, messages: 600, version: "IPv4"}
		if err := s.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.lost == 0 || s.received+s.lost != s.messages || size > 0 && s.late == 0 {
			t.Errorf("%d bytes: %d received, %d lost, %d late of %d", size, s.received, s.lost, s.late, s.messages)
		}
		outcome, err := outcomeOf([]*stream{s}, hosts...)
		if err != nil || !strings.Contains(outcome, " lost (not counted by the devices)") {
			t.Errorf("%q, %v", outcome, err)
		}
	}
}

// TestStreamOverNoNetwork: a stream fails if messages stop arriving.
func TestStreamOverNoNetwork(t *testing.T) {
	t.Parallel()
	hosts := impairedHosts(t, memnet.Impairment{Loss: 1})
	s := &stream{from: hosts[0], to: hosts[1], messages: 10 * window, version: "IPv4"}
	if err := s.run(t.Context()); err == nil || !strings.Contains(err.Error(), "no message arrived within "+card.StallTimeout.String()) {
		t.Errorf("%v, after %d messages", err, s.sent)
	}
}

// TestStreamOverADamagingNetwork: a corrupted packet is dropped. The stream counts it as lost and prints its drop
// counter.
func TestStreamOverADamagingNetwork(t *testing.T) {
	t.Parallel()
	hosts := impairedHosts(t, memnet.Impairment{Corruption: 0.05})
	s := &stream{from: hosts[0], to: hosts[1], size: 64, messages: 200, version: "IPv4"}
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if outcome, err := outcomeOf([]*stream{s}, hosts...); err != nil || !strings.Contains(outcome, "right: ") || !strings.Contains(outcome, "engine drop_icrc ") {
		t.Errorf("%q, %v; %d lost", outcome, err, s.lost)
	}
}

// TestWindowIn: the messages in flight fit the socket buffer.
func TestWindowIn(t *testing.T) {
	for room, want := range map[int]int{0: 1, 4608: 2, 65536: 28, 425984: window, 16 << 20: window} {
		if got := windowIn(room); got != want {
			t.Errorf("%d bytes: %d messages, want %d", room, got, want)
		}
	}
}
