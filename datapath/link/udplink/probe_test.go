// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"errors"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"golang.org/x/sys/unix"
)

// This kernel assigns the identifications that the package expects. If this cannot be tested, the error says so.
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

// The filter passes only packets whose identification matches their payload.
func TestProbeFilter(t *testing.T) {
	host := labtest.New(t, "probe")
	check(t, host.Do(func() error {
		p, err := newProbe()
		check(t, err)
		defer unix.Close(p.fd)
		check(t, filter(p.fd, numberFilter))
		for id, want := range map[byte]error{1: ErrNumbering, 0: nil, 7: ErrNumbering} {
			if err := p.try(id); !errors.Is(err, want) {
				t.Errorf("number %d: %v", id, err)
			}
		}
		other, err := newProbe()
		check(t, err)
		defer unix.Close(other.fd)
		check(t, unix.Sendto(other.fd, []byte("not the card's"), 0, p.self))
		check(t, p.try(0)) // packets from other sockets are ignored
		check(t, unix.SetsockoptInt(p.fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT))
		if err := p.try(0); !errors.Is(err, ErrNumbering) {
			t.Errorf("without Don't Fragment: %v", err)
		}
		if err := p.arrives(0); !errors.Is(err, unix.ETIMEDOUT) {
			t.Errorf("a missing packet: %v", err)
		}
		return nil
	}))
}
