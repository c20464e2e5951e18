// SPDX-License-Identifier: Apache-2.0

package netdev_test

import (
	"encoding/binary"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/netdev"
)

func TestMain(m *testing.M) { labtest.Main(m) }

var (
	check, refused    = errtest.Check, errtest.Refused
	eventually, guard = waittest.Eventually, waittest.Guard
)

// host is an in-memory interface: it sends the packets of the test, and stores received ones.
type host struct {
	addresses []netip.Prefix
	out       chan []byte
	in        chan []byte
	once      sync.Once
	closed    chan struct{}
	mtu       chan int
}

func newHost(cidrs ...string) *host {
	h := &host{out: make(chan []byte, 4096), in: make(chan []byte, 4096), closed: make(chan struct{}), mtu: make(chan int, 10)}
	for _, cidr := range cidrs {
		h.addresses = append(h.addresses, netip.MustParsePrefix(cidr))
	}
	return h
}

func (h *host) Name() string { return "memory" }

func (h *host) ReadPackets(buffers [][]byte, sizes []int) (n int, err error) {
	select {
	case p := <-h.out:
		sizes[0] = copy(buffers[0], p)
		return 1, nil
	case <-h.closed:
		return 0, os.ErrClosed
	}
}

func (h *host) WritePacket(p []byte) error {
	select {
	case h.in <- slices.Clone(p):
		return nil
	default:
		return os.ErrDeadlineExceeded
	}
}

func (h *host) Prefixes() ([]netip.Prefix, error) { return h.addresses, nil }

// NextHop is the first address of the network: the router.
func (h *host) NextHop(to netip.Addr) (netip.Addr, error) {
	for _, p := range h.addresses {
		if p.Addr().Is4() == to.Is4() {
			return p.Masked().Addr().Next(), nil
		}
	}
	return to, verbs.ErrUnreachable
}

func (h *host) Start(mtu int) error { h.mtu <- mtu; return nil }

func (h *host) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// cards are two contexts on a wire in memory.
func cards(t testing.TB) (a, b *verbs.Context) {
	t.Helper()
	ip := func(text string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(text)} }
	left, right, err := hca.OpenPair(ip("10.0.0.1"), ip("10.0.0.2"))
	check(t, err)
	a, err = verbs.Open(left)
	check(t, err)
	b, err = verbs.Open(right)
	check(t, err)
	t.Cleanup(func() { check(t, a.Close()); check(t, b.Close()) })
	return a, b
}

// start has a device carry packets until the test ends.
func start(t testing.TB, c *verbs.Context, h *host, id int, o netdev.Options) *netdev.Device {
	t.Helper()
	o.Interface = h
	d, err := netdev.Alloc(c, 1, "", o)
	check(t, err)
	check(t, d.SetID(id))
	check(t, d.Init())
	ran := make(chan error, 1)
	go func() { ran <- d.Run(guard(t)) }()
	t.Cleanup(func() {
		check(t, d.Close())
		check(t, <-ran)
	})
	return d
}

// ipPacket is a packet with a length in bytes, its header included.
func ipPacket(from, to string, length int) []byte {
	p := make([]byte, length)
	a, b := netip.MustParseAddr(from), netip.MustParseAddr(to)
	if a.Is4() {
		p[0] = 0x45
		binary.BigEndian.PutUint16(p[2:], uint16(length))
		copy(p[12:], a.AsSlice())
		copy(p[16:], b.AsSlice())
	} else {
		p[0] = 0x60
		binary.BigEndian.PutUint16(p[4:], uint16(length-40))
		copy(p[8:], a.AsSlice())
		copy(p[24:], b.AsSlice())
	}
	for i := 40; i < length; i++ {
		p[i] = byte(i * 7)
	}
	return p
}
