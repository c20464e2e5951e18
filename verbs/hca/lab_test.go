// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
)

// stations is two hosts on one wire, with a station on each.
type stations struct {
	*labtest.PairLab
	a, b *station
}

func newStations(t testing.TB, options ...Option) *stations {
	t.Helper()
	return newStationsOn(t, labtest.Pair(t), options...)
}

func newStationsOn(t testing.TB, hosts *labtest.PairLab, options ...Option) *stations {
	t.Helper()
	l := &stations{hosts, newStation(t, open(t, hosts.A, options...)), newStation(t, open(t, hosts.B, options...))}
	l.active()
	return l
}

// active waits for both carriers: a network card may lose its carrier when it gets an XDP program.
func (l *stations) active() {
	for _, s := range []*station{l.a, l.b} {
		eventually(s, "PORT_ACTIVE", func() bool { return s.port().State == verbs.PortActive })
	}
}

// open opens a host's eth0 until the end of the test.
func open(t testing.TB, host *lab.Namespace, options ...Option) *Card {
	t.Helper()
	d := openCard(t, host, options...)
	t.Cleanup(func() { check(t, d.Close()) })
	return d
}

// openCard opens a host's eth0.
func openCard(t testing.TB, host *lab.Namespace, options ...Option) *Card {
	t.Helper()
	if len(labtest.Cards()) > 0 {
		options = append([]Option{WithSocketMode(SocketZeroCopy)}, options...)
	}
	d, err := Open("eth0", append(options, InNamespace(host.Path()))...)
	check(t, err)
	return d
}

// eth0 returns the host's link in its current state.
func eth0(t testing.TB, host *lab.Namespace) netlink.Link {
	t.Helper()
	link, err := host.Netlink().LinkByName("eth0")
	check(t, err)
	return link
}

// message sends one message from one station to another and checks it at both ends.
func message(t testing.TB, from, to *station, ah *verbs.AH, payload []byte) {
	t.Helper()
	check(t, to.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{to.mr.SGE(0, 40+len(payload))}}}))
	check(t, from.qp.PostSend([]verbs.SendWR{messageWR(from, to, ah, payload)}))
	expect(t, from.wait(1), ok(9))
	got := to.wait(1)
	expect(t, got, ok(0))
	if _, arrived := got[0].Payload(to.mr.Bytes()); !bytes.Equal(arrived, payload) {
		t.Fatalf("sent %d bytes, got %d, or the bytes differ", len(payload), len(arrived))
	}
}

func messageWR(from, to *station, ah *verbs.AH, payload []byte) verbs.SendWR {
	at := 8 * slotLen
	copy(from.mr.Bytes()[at:], payload)
	return from.send(9, ah, to, from.mr.SGE(at, len(payload)))
}

// pattern returns data that differs from place to place.
func pattern(length, salt int) []byte {
	p := make([]byte, length)
	for i := range p {
		p[i] = byte(i*7 + i>>8 + salt)
	}
	return p
}

// linkLocal returns a host's link-local address.
func linkLocal(t testing.TB, host *lab.Namespace) string {
	t.Helper()
	list, err := host.Netlink().AddrList(eth0(t, host), netlink.FAMILY_V6)
	check(t, err)
	for _, a := range list {
		if a.IP.IsLinkLocalUnicast() {
			return a.IP.String()
		}
	}
	t.Fatal("no link-local address")
	return ""
}

// delAddress removes an address from a host's eth0.
func delAddress(t testing.TB, host *lab.Namespace, cidr string) {
	t.Helper()
	a, err := netlink.ParseAddr(cidr)
	check(t, err)
	check(t, host.Netlink().AddrDel(eth0(t, host), a))
}

// setMAC changes the Ethernet address of a host's eth0, as if it were another machine.
func setMAC(t testing.TB, host *lab.Namespace, last byte) net.HardwareAddr {
	t.Helper()
	mac := net.HardwareAddr{2, 0, 0, 0, 0, last}
	check(t, host.Netlink().LinkSetHardwareAddr(eth0(t, host), mac))
	return mac
}

// logged is a card's log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) says(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.text.Bytes(), []byte(text))
}

func (l *logged) option() Option { return WithLogger(slog.New(slog.NewTextHandler(l, nil))) }

// counts returns all non-zero counters of a card, by name.
func counts(t testing.TB, d *Card) map[string]uint64 {
	t.Helper()
	s, err := d.Statistics()
	check(t, err)
	m := dropsOf(d)
	for name, n := range map[string]uint64{
		"delivered": s.Engine.Delivered, "rx_dropped": s.Socket.RxDropped, "rx_ring_full": s.Socket.RxRingFull,
		"tx_invalid": s.Socket.TxInvalidDescs, "malformed": s.Socket.Malformed, "rx_invalid": s.Socket.RxInvalidDescs,
	} {
		if n != 0 {
			m[name] = n
		}
	}
	for _, c := range s.Steering {
		if c.Value != 0 {
			m[c.Name] = c.Value
		}
	}
	return m
}
