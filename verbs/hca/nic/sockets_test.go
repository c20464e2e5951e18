// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"log/slog"
	"testing"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab/labtest"
	"golang.org/x/sys/unix"
)

// still is an engine that moves no packets.
type still struct{}

func (still) Do(change func())              { change() }
func (still) ChangeLink(change func())      { change() }
func (still) Relay() link.Relay             { return nil }
func (still) Relayed() (given, done uint64) { return 0, 0 }
func (still) Until(done func() bool, timeout time.Duration) bool {
	for end := time.Now().Add(timeout); ; time.Sleep(time.Millisecond) {
		if done() || time.Now().After(end) {
			return true
		}
	}
}

// open opens eth0 of a host.
func open(t *testing.T, namespace string) *Interface {
	t.Helper()
	i, err := Open("eth0", Config{Namespace: namespace, StateDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	check(t, err)
	t.Cleanup(func() {
		check(t, i.Link().Close())
		check(t, i.Close())
	})
	i.Start(still{})
	return i
}

// A driver may refuse larger sockets only at binding, and then also those like the old ones. The queue gets a socket as
// soon as that works again.
func TestSocketsComeBackAfterAFailure(t *testing.T) {
	i := open(t, labtest.Pair(t).A.Path())
	p, err := i.Port()
	check(t, err)
	if p.Lost != nil || p.Stuck != nil || p.Carried != wire.MTU1024 {
		t.Errorf("port %+v", p)
	}
	s := i.sockets
	s.plan.index++ // no such interface
	err = s.replace([]int{0}, wire.MTU2048)
	s.plan.index--
	refused(t, err, unix.ENODEV)
	if s.queues[0] != nil {
		t.Error("got a socket on a non-existent interface")
	}
	p, err = i.Port()
	check(t, err)
	if n := len(i.Link().Descriptors()); n != 1 || p.Lost != nil || p.Carried != wire.MTU1024 {
		t.Errorf("got %d sockets, port %+v", n, p)
	}
}

// A queue without a socket is in the port's Lost, and recovers; a failure to open larger sockets does not change it.
func TestWhatThePortSaysOfSockets(t *testing.T) {
	host := labtest.Pair(t).A
	i := open(t, host.Path())
	i.SetFrames(3) // not a power of two
	i.sockets.retire([]int{0})
	p, err := i.Port()
	check(t, err)
	refused(t, p.Lost, unix.EINVAL, "queue 0 of 1 has no AF_XDP socket")
	i.SetFrames(0)
	p, err = i.Port()
	check(t, err)
	check(t, p.Lost)
	link, err := host.Netlink().LinkByName("eth0")
	check(t, err)
	i.SetFrames(3)
	check(t, host.Netlink().LinkSetMTU(link, 2200))
	p, err = i.Port()
	check(t, err)
	refused(t, p.Stuck, unix.EINVAL, "the RDMA MTU stays 1024")
	if p.Carried != wire.MTU1024 || p.Lost != nil {
		t.Errorf("port %+v", p)
	}
	i.SetFrames(0)
	check(t, host.Netlink().LinkSetMTU(link, 2201))
	p, err = i.Port()
	check(t, err)
	if p.Stuck != nil || p.Carried != wire.MTU2048 {
		t.Errorf("port %+v", p)
	}
}
