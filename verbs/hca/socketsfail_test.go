// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/nic"
)

// refuseSockets makes opening further sockets of the card fail, or succeed again.
func refuseSockets(card *Card, refuse bool) {
	card.port.Asking.Lock()
	defer card.port.Asking.Unlock()
	frames := uint32(0)
	if refuse {
		frames = 3 // not a power of two
	}
	card.host.(*nic.Interface).SetFrames(frames)
}

// If sockets for a larger MTU cannot be opened, the RDMA MTU stays, an event and the log report it, and messages flow.
// Setting the MTU again retries.
func TestMTUThatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	var log logged
	l := newStations(t, log.option())
	ah := l.a.ah("10.77.0.2")
	l.a.noEvent()
	refuseSockets(l.a.device, true)
	setMTUs(t, l.PairLab, 9000)
	l.a.awaitEvent(mtuChange)
	if port := l.a.port(); port.ActiveMTU != verbs.MTU1024 || port.MaxMTU != verbs.MTU1024 || port.InterfaceMTU != 9000 || port.State != verbs.PortActive {
		t.Errorf("port %+v", port)
	}
	if !log.says("the RDMA MTU stays 1024") || !log.says("reopen the device") {
		t.Error("the log does not report it")
	}
	eventually(t, "the other end's MTU", func() bool { return l.b.port().ActiveMTU.Bytes() == carried(t, 4096) })
	message(t, l.a, l.b, ah, pattern(1024, 1))
	l.a.device.follower.Port()
	refuseSockets(l.a.device, false)
	setMTUs(t, l.PairLab, 2200)
	l.a.awaitEvent(mtuChange)
	if port := l.a.port(); port.ActiveMTU != verbs.MTU2048 || port.MaxMTU.Bytes() != carried(t, 4096) {
		t.Errorf("port %+v", port)
	}
	eventually(t, "the other end's MTU", func() bool { return l.b.port().ActiveMTU == verbs.MTU2048 })
	message(t, l.a, l.b, ah, pattern(2000, 1))
}

// A receive queue without a socket takes the port down, with an event, until it gets one.
func TestQueueWithoutSocket(t *testing.T) {
	t.Parallel()
	var log logged
	hosts := newWidePair(t)
	a, b := newStation(t, open(t, hosts.A)), newStation(t, open(t, hosts.B, log.option()))
	refuseSockets(b.device, true)
	check(t, setQueues(t, hosts.B, 2, 2))
	b.awaitEvent(portErr)
	eventually(t, "the log", func() bool { return log.says("queue 1 of 2 has no AF_XDP socket") })
	if b.port().State != verbs.PortDown {
		t.Error("the port is up")
	}
	refuseSockets(b.device, false)
	eventually(t, "the port", func() bool { return b.port().State == verbs.PortActive })
	if socketsOf(b.device) != 2 {
		t.Errorf("got %d sockets", socketsOf(b.device))
	}
	flows(t, &stations{hosts, a, b}, a.ah("10.77.0.2"))
}
