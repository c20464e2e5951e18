// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errtest"
)

var (
	start   = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	service = wire.ServiceIDFor(wire.PortSpaceUDP, 7174)
	there   = path("10.99.0.2", "10.99.0.3") // from the passive side's view
	back    = path("10.99.0.3", "10.99.0.2") // from the active side's view
)

func gid(s string) wire.GID { return wire.GIDFromAddr(netip.MustParseAddr(s)) }

func path(local, remote string) Path { return Path{Local: gid(local), Remote: gid(remote)} }

var check, refused = errtest.Check, errtest.Refused

// seeded returns a random source, and logs its seed.
func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func newManager(t testing.TB) *Manager { return New(seeded(t).Uint64) }

// ask returns the configuration of a request along a path, with AskConfig's defaults.
func ask(from Path, owner any) AskConfig {
	return AskConfig{
		Path: from, Service: service, Owner: owner,
		Source: netip.AddrPortFrom(from.Local.Addr(), 40000), Dest: netip.AddrPortFrom(from.Remote.Addr(), service.Port()),
	}
}

// sent dequeues all messages that a manager sends.
func sent(m *Manager) (all []Datagram) {
	for d, some := m.NextDatagram(); some; d, some = m.NextDatagram() {
		all = append(all, d)
	}
	return all
}

// told dequeues all events.
func told(m *Manager) (all []Event) {
	for e, some := m.NextEvent(); some; e, some = m.NextEvent() {
		all = append(all, e)
	}
	return all
}

// one returns the only element, and fails the test unless there is exactly one.
func one[T any](t testing.TB, all []T) (only T) {
	t.Helper()
	if len(all) != 1 {
		t.Fatalf("%d of %T, want 1: %+v", len(all), only, all)
	}
	return all[0]
}

func none[T any](t testing.TB, what string, all []T) {
	t.Helper()
	if len(all) != 0 {
		t.Fatalf("%s: %+v", what, all)
	}
}

// peerMessages gives the MADs of a capture of the Linux kernel's, in order.
func peerMessages(t testing.TB, capture string) (all []wire.MAD) {
	t.Helper()
	for _, p := range peerPackets(t, capture) {
		if p.BTH().DestQP() != wire.QPNGSI {
			continue
		}
		m, ok := wire.ParseMAD(p.Payload())
		if !ok {
			t.Fatalf("%s: no MAD", capture)
		}
		all = append(all, m)
	}
	return all
}

// peerPackets gives all packets of a capture.
func peerPackets(t testing.TB, capture string) (all []*wire.Packet) {
	t.Helper()
	rest, err := os.ReadFile("../../../datapath/wire/testdata/peer/" + capture + ".pcap")
	check(t, err)
	for rest = rest[24:]; len(rest) > 0; { // a record: time 8, length 4, again 4, frame
		length := binary.LittleEndian.Uint32(rest[8:])
		frame := rest[16 : 16+length]
		rest = rest[16+length:]
		if p := new(wire.Packet); wire.Parse(frame, p) == wire.FaultNone {
			all = append(all, p)
		}
	}
	return all
}

// request is a request from a sender for the service, as its manager builds it.
func request(sender wire.GID, id uint32, tid uint64) (Path, wire.MAD) {
	f := wire.SIDRReq{RequestID: id, PKey: wire.PKeyDefault, ServiceID: service}
	header := wire.CMAddress{Source: netip.AddrPortFrom(sender.Addr(), 1), Destination: there.Local.Addr()}
	header.Put(f.PrivateData[:])
	m := make(wire.MAD, wire.MADLen)
	m.PutSIDRReq(tid, &f)
	return Path{Local: there.Local, Remote: sender}, m
}

// received is how many datagrams the counters say were received.
func (c *Counters) received() (sum uint64) {
	for _, n := range c[:Sent] {
		sum += n
	}
	return sum
}

// counted checks the counters that are not 0.
func counted(t testing.TB, m *Manager, want map[Counter]uint64) {
	t.Helper()
	got := map[Counter]uint64{}
	for c, n := range m.Counters() {
		if n != 0 {
			got[Counter(c)] = n
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("counters %v, want %v", got, want)
	}
}

func mad(d Datagram) wire.MAD { return d.MAD[:] }
