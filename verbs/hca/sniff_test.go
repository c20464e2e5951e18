package hca

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
)

// sniffer sees what passes a link: all of it, unless that link is a card.
type sniffer struct {
	testing.TB
	*capture.Socket
}

func newSniffer(t testing.TB, host *lab.Namespace) *sniffer {
	t.Helper()
	return newSnifferOn(t, host, "eth0")
}

func newSnifferOn(t testing.TB, host *lab.Namespace, name string) *sniffer {
	t.Helper()
	socket, err := capture.Open(host, name)
	check(t, err)
	t.Cleanup(func() { check(t, socket.Close()) })
	return &sniffer{t, socket}
}

// next is the next RoCEv2 packet, good until the one after it.
func (s *sniffer) next() (frame []byte, p *wire.Packet) {
	s.Helper()
	p = new(wire.Packet)
	eventually(s, "RoCEv2 packet", func() bool {
		f, ok, err := s.Next()
		check(s, err)
		frame = f.Data
		return ok && wire.Parse(frame, p) == wire.FaultNone
	})
	return frame, p
}

// destMAC is where the next RoCEv2 packet goes.
func (s *sniffer) destMAC() (mac wire.MAC) {
	s.Helper()
	frame, _ := s.next()
	copy(mac[:], frame)
	return mac
}

// said counts what the link's host has said about each group in IGMP and MLD since the
// last time.
func (s *sniffer) said() map[netip.Addr]int {
	s.Helper()
	counts := map[netip.Addr]int{}
	for frame, err := range s.Frames() {
		check(s, err)
		for _, m := range capture.MembershipMessages(frame.Data) {
			if frame.Outgoing {
				counts[m.Group]++
			}
		}
	}
	return counts
}

// setNeighbourTimers makes a host's eth0 ask for neighbours more often than once a second.
func setNeighbourTimers(t testing.TB, host *lab.Namespace) {
	t.Helper()
	check(t, host.Do(func() error {
		for _, knob := range []string{"retrans_time_ms", "interval_probe_time_ms"} {
			for _, family := range []string{"ipv4", "ipv6"} {
				path := filepath.Join("/proc/sys/net", family, "neigh/eth0", knob)
				if err := os.WriteFile(path, []byte("100"), 0o644); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// asleep waits until a card's worker sleeps, and checks that it sleeps on.
func asleep(t testing.TB, d *Card) {
	t.Helper()
	eventually(t, "sleep of the worker", func() bool {
		for range 50 {
			if !d.session.doorbell.Asleep() {
				return false
			}
			time.Sleep(time.Millisecond)
		}
		return true
	})
}
