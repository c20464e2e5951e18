// SPDX-License-Identifier: Apache-2.0

//go:build cards

package hca

import (
	"bufio"
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// socketMode returns a card's AFXDPMode.
func socketMode(s *station) string {
	s.Helper()
	attr, err := s.ctx.QueryDevice()
	check(s, err)
	return attr.AFXDPMode
}

// zeroCopy fails the test unless both cards have zero-copy sockets.
func (l *stations) zeroCopy(t *testing.T) {
	t.Helper()
	for _, s := range []*station{l.a, l.b} {
		if mode := socketMode(s); mode != "zero-copy" {
			t.Errorf("AF_XDP %s", mode)
		}
	}
}

// balanced fails the test unless all arrived packets were delivered.
func (l *stations) balanced(t *testing.T) {
	t.Helper()
	for _, s := range []*station{l.a, l.b} {
		got := counts(t, s.device)
		if got["redirected"] == 0 || got["redirected"] != got["delivered"] || len(dropsOf(s.device)) != 0 {
			t.Errorf("counters %v", got)
		}
	}
	if a, b := counts(t, l.a.device)["delivered"], l.b.device.engine.Counters().Sent; a != b {
		t.Errorf("sent %d, delivered %d", b, a)
	}
	if b, a := counts(t, l.b.device)["delivered"], l.a.device.engine.Counters().Sent; a != b {
		t.Errorf("sent %d, delivered %d", a, b)
	}
}

// Datagrams of all sizes arrive both ways, with each RDMA MTU whose packets fit a chunk.
func TestZeroCopyMessages(t *testing.T) {
	for _, row := range []struct{ link, rdma int }{{1500, 1024}, {2200, 2048}} {
		t.Run(fmt.Sprint("MTU ", row.link), func(t *testing.T) {
			l := newStationsOn(t, labtest.Pair(t, lab.WithMTU(row.link), lab.WithQueues(2)))
			l.bothWays(t, "10.77.0.1", "10.77.0.2", row.rdma)
			l.bothWays(t, "fd77::1", "fd77::2", row.rdma)
			l.zeroCopy(t)
			l.balanced(t)
		})
	}
}

// Messages, WRITEs and READs of several packets arrive complete over a connection.
func TestZeroCopyConnection(t *testing.T) {
	hosts := labtest.Pair(t)
	l := &stations{PairLab: hosts}
	a, b := newBadEnd(t, open(t, hosts.A), 1, 1), newBadEnd(t, open(t, hosts.B), 1, 2)
	l.a, l.b = a.station, b.station
	l.active()
	a.connect(b, "10.77.0.2")
	b.connect(a, "10.77.0.1")
	want := pattern(100_000, 3)
	copy(a.slot(badSource), want)
	request := func(opcode verbs.Opcode, at, length int) {
		t.Helper()
		check(t, a.qp.PostSend([]verbs.SendWR{{
			ID: 7, Opcode: opcode, Flags: verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(at*badSlot, length)},
			RKey: b.mr.RKey(), RemoteAddr: b.mr.IOVA() + badSink*badSlot,
		}}))
		var wcs [1]verbs.WC
		_, err := a.sends.Wait(guard(t), wcs[:])
		check(t, err)
		expect(t, wcs[:], ok(7))
	}
	request(verbs.WRSend, badSource, len(want))
	var wcs [1]verbs.WC
	_, err := b.recvs.Wait(guard(t), wcs[:])
	check(t, err)
	expect(t, wcs[:], ok(0))
	if !bytes.Equal(b.slot(badRecv)[:len(want)], want) {
		t.Error("SEND: the bytes differ")
	}
	request(verbs.WRRDMAWrite, badSource, len(want))
	if !bytes.Equal(b.slot(badSink)[:len(want)], want) {
		t.Error("RDMA WRITE: the bytes differ")
	}
	clear(a.slot(badSource))
	request(verbs.WRRDMARead, badSource, len(want))
	if !bytes.Equal(a.slot(badSource)[:len(want)], want) {
		t.Error("RDMA READ: the bytes differ")
	}
	l.zeroCopy(t)
}

// An RDMA MTU whose packets need several chunks is refused if zero-copy is required, and uses copy mode by default.
func TestZeroCopyLongFrames(t *testing.T) {
	hosts := labtest.Pair(t, lab.WithMTU(4200))
	_, err := Open("eth0", InNamespace(hosts.A.Path()), WithNetwork(NetworkXDP), WithSocketMode(SocketZeroCopy))
	refused(t, err, unix.EOPNOTSUPP, "zero-copy", "RDMA MTU 4096", "mtu 2200")
	l := newStationsOn(t, hosts, WithSocketMode(SocketAuto))
	l.bothWays(t, "10.77.0.1", "10.77.0.2", 4096)
	if mode := socketMode(l.a); mode != "copy" {
		t.Errorf("AF_XDP %s", mode)
	}
	l.balanced(t)
}

// Messages sent while a link is down are dropped by name, and afterwards everything works.
func TestZeroCopyLinkFlaps(t *testing.T) {
	l := newStations(t)
	ah := l.a.ah("10.77.0.2")
	message(t, l.a, l.b, ah, []byte("before"))
	for range 3 {
		check(t, l.A.Netlink().LinkSetDown(eth0(t, l.A)))
		eventually(t, "PORT_DOWN", func() bool { return l.a.port().State == verbs.PortDown })
		dropsWhileDown(t, l, ah)
		check(t, l.A.Netlink().LinkSetUp(eth0(t, l.A)))
		eventually(t, "PORT_ACTIVE", func() bool { return l.a.port().State == verbs.PortActive })
		flows(t, l, ah)
	}
	l.zeroCopy(t)
}

// The card follows added queues, if the driver allows the change while XDP runs.
func TestZeroCopyQueues(t *testing.T) {
	hosts := labtest.Pair(t)
	l := newStationsOn(t, hosts)
	ah := l.a.ah("10.77.0.2")
	message(t, l.a, l.b, ah, []byte("before"))
	set := func(queues uint32) error {
		return hosts.B.Do(func() error {
			tool, err := ethtool.NewEthtool()
			if err != nil {
				return err
			}
			defer tool.Close()
			channels, err := tool.GetChannels("eth0")
			if err != nil {
				return err
			}
			channels.CombinedCount = queues
			_, err = tool.SetChannels("eth0", channels)
			return err
		})
	}
	want := 2
	if err := set(2); err != nil {
		t.Logf("the driver refuses a change while XDP runs: %v", err)
		want = 1
	}
	eventually(t, "sockets", func() bool { return socketsOf(l.b.device) == want })
	eventually(t, "PORT_ACTIVE", func() bool { return l.b.port().State == verbs.PortActive })
	flows(t, l, ah)
	if want == 2 {
		refused(t, set(1), unix.EINVAL)
	}
	l.zeroCopy(t)
}

// A killed process leaves no state in the NIC that prevents the next one from opening it.
func TestZeroCopyKill(t *testing.T) {
	hosts := labtest.Pair(t, lab.WithQueues(2))
	for range 3 {
		holder := child("hold", without("")...)
		stdin, err := holder.StdinPipe()
		check(t, err)
		out, err := holder.StdoutPipe()
		check(t, err)
		check(t, hosts.A.Do(holder.Start))
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
			t.Fatalf("%q, %v", line, err)
		}
		check(t, holder.Process.Kill())
		_ = holder.Wait() // that it was killed
		_ = stdin.Close()
		t.Run("reopened", func(t *testing.T) {
			l := newStationsOn(t, hosts)
			l.bothWays(t, "10.77.0.1", "10.77.0.2", wire.MTU1024.Bytes())
			l.zeroCopy(t)
			l.balanced(t)
		})
	}
}

// Messages posted before Close arrive: the NIC sends them from memory that is freed with the card.
func TestZeroCopyClose(t *testing.T) {
	const count = depth
	hosts := labtest.Pair(t)
	for round := range 10 {
		l := newStationsOn(t, hosts)
		l.zeroCopy(t)
		ah := l.a.ah("10.77.0.2")
		for i := range count {
			l.a.post(l.a.send(uint64(i), ah, l.b, l.a.piece(i, 1000)))
		}
		check(t, l.a.device.Close())
		redirected := func() uint64 { return counts(t, l.b.device)["redirected"] }
		for end := time.Now().Add(waittest.Limit); redirected() < count && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if n := redirected(); n != count {
			t.Errorf("round %d: got %d of %d messages", round, n, count)
		}
		check(t, l.b.device.Close())
	}
}
