package udplink

import (
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"golang.org/x/sys/unix"
)

// This kernel numbers packets as the package relies on it. Where that cannot be tried, it says so.
func TestProbe(t *testing.T) {
	host := labtest.New(t, "probe")
	check(t, host.Do(func() error {
		if trains, err := Probe(); err != nil || trains != nil {
			t.Error(trains, err)
		}
		return nil
	}))
	lo, err := host.Netlink().LinkByName("lo")
	check(t, err)
	check(t, host.Netlink().LinkSetDown(lo))
	untried := func() error {
		if trains, err := Probe(); err != nil || trains == nil {
			t.Error(trains, err)
		}
		return nil
	}
	check(t, host.Do(untried))
	addresses, err := host.Netlink().AddrList(lo, unix.AF_INET)
	check(t, err)
	for i := range addresses {
		check(t, host.Netlink().AddrDel(lo, &addresses[i]))
	}
	check(t, host.Do(untried))
}

// The filter lets through what has the number that it says, and nothing else.
func TestProbeFilter(t *testing.T) {
	host := labtest.New(t, "probe")
	check(t, host.Do(func() error {
		p, err := newProbe()
		check(t, err)
		defer unix.Close(p.fd)
		check(t, filter(p.fd, numberFilter))
		for _, id := range []byte{1, 0, 7} {
			check(t, p.send(probeOf(id)))
			if got := p.arrives(id); got != (id == 0) {
				t.Errorf("number %d: %v", id, got)
			}
		}
		check(t, unix.SetsockoptInt(p.fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT))
		check(t, p.send(probeOf(0)))
		if p.arrives(0) {
			t.Error("without Don't Fragment")
		}
		return nil
	}))
}
