// SPDX-License-Identifier: Apache-2.0

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

// sniffer reads the frames on a link: all of them, unless that link is a card.
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

// next returns the next RoCEv2 packet, valid until the next call.
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

// destMAC returns the destination MAC of the next RoCEv2 packet.
func (s *sniffer) destMAC() (mac wire.MAC) {
	s.Helper()
	frame, _ := s.next()
	copy(mac[:], frame)
	return mac
}

// said counts the IGMP and MLD messages of the link's host about each group since the last call.
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

// setNeighbourTimers makes a host's eth0 send neighbour queries more often than once a second.
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

// asleep waits until a card's worker sleeps, and checks that it stays asleep.
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
