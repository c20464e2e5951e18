// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"fmt"
	"testing"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
)

// numbered receives messages with increasing immediate data, and counts them.
type numbered struct {
	*station
	posted, came int // receives
	last         int
}

// take posts receives up to a window, and handles the completions.
func (n *numbered) take() {
	n.Helper()
	for _, wc := range completionsOf(n, n.cq) {
		check(n, wc.Err())
		if number := int(wc.ImmData); number <= n.last {
			n.Fatalf("got message %d after message %d", number, n.last)
		}
		n.last = int(wc.ImmData)
		n.came++
	}
	for ; n.posted < n.came+2*window; n.posted++ {
		n.receive(n.posted % window)
	}
}

// lost returns the number of messages that the card has dropped: it may have had no receive.
func (n *numbered) lost() int {
	n.Helper()
	got := counts(n, n.device)
	return int(got[datapath.DropNoReceive.String()] + got["rx_dropped"] + got["rx_ring_full"])
}

// newNumbered returns a receiver with room for all messages in flight.
func newNumbered(t *testing.T, card *Card) *numbered {
	t.Helper()
	s := newStation(t, card)
	c := defaultCap()
	c.MaxRecvWR = 2 * window
	s.qp = s.newQP(c)
	check(t, s.qp.Activate(testQKey))
	return &numbered{station: s, last: -1}
}

// shape limits a host's eth0 to a megabit per second (tc qdisc add dev eth0 root tbf), with a burst and a queue limit
// in bytes.
func shape(t *testing.T, host *lab.Namespace, burst, limit uint32) {
	t.Helper()
	const rate = 1e6 / 8
	check(t, host.Netlink().QdiscReplace(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: eth0(t, host).Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       rate, Buffer: netlink.Xmittime(rate, burst), Limit: limit,
	}))
}

// droppedByDiscipline returns the discipline's own count of drops (tc -s qdisc).
func droppedByDiscipline(t *testing.T, host *lab.Namespace) (sum int) {
	t.Helper()
	list, err := host.Netlink().QdiscList(eth0(t, host))
	check(t, err)
	for _, discipline := range list {
		if s := discipline.Attrs().Statistics; s != nil && s.Queue != nil {
			sum += int(s.Queue.Drops)
		}
	}
	return sum
}

// A discipline that drops: each packet arrives or is counted once, and those that arrive are in order. A discipline
// that drops whole trains reports it; one that splits trains drops parts of them, and only counts that itself. Without
// trains the AF_XDP socket bypasses both.
func TestTrainsThroughADisciplineThatDrops(t *testing.T) {
	t.Parallel()
	const train = window * 1100 // bytes
	for _, row := range []struct {
		name         string
		burst, limit uint32
		counts       func(*testing.T, *station, *lab.Namespace) int
	}{
		{"whole trains", 3 * train, train + 5000, droppedByUs},
		{"parts of trains", 3000, train / 3, func(t *testing.T, _ *station, host *lab.Namespace) int { return droppedByDiscipline(t, host) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			hosts := labtest.Pair(t)
			shape(t, hosts.A, row.burst, row.limit)
			b := newNumbered(t, open(t, hosts.B))
			a := deepen(newStation(t, open(t, hosts.A, WithSendMode(SendTrains))))
			dropped := func() int { return row.counts(t, a, hosts.A) }
			before := dropped()
			posted := overload(b, a, a.ah("10.77.0.2"), func() bool { return !link.KernelCutsTrains() || dropped() > before })
			defer func() {
				t.Logf("posted %d, received %d, dropped %d; the discipline counts %d; %v", posted, b.came, dropped()-before,
					droppedByDiscipline(t, hosts.A), counts(t, b.device))
			}()
			eventually(t, "an end for every message", func() bool {
				b.take()
				return b.came+b.lost()+dropped()-before == posted
			})
			if (b.came+b.lost() < posted) != link.KernelCutsTrains() {
				t.Error("the discipline has not dropped anything")
			}
		})
	}
}

func droppedByUs(t *testing.T, s *station, _ *lab.Namespace) int {
	return int(s.device.engine.Counters().Drops[datapath.DropInterface])
}

// overload sends windows, and single messages between them, at least eight of each, until enough returns true. It
// returns the number of messages.
func overload(b *numbered, a *station, ah *verbs.AH, enough func() bool) (posted int) {
	a.Helper()
	for round := 0; round < 8 || !enough(); round++ {
		b.take()
		a.postWindow(ah, b.station, posted, 1024)
		posted += window
		a.wait(window)
		b.take()
		single := a.send(0, ah, b.station, a.piece(0, 100))
		single.Opcode, single.ImmData = verbs.WRSendWithImm, uint32(posted)
		a.post(single)
		posted++
		a.wait(1)
	}
	return posted
}

// A macvlan passes trains to the interface below it, where they are segmented like that interface's own.
func TestTrainsOverAMacvlan(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	child := attrs("macv0", 1500)
	child.ParentIndex = eth0(t, hosts.A).Attrs().Index
	addLink(t, hosts.A, &netlink.Macvlan{LinkAttrs: child, Mode: netlink.MACVLAN_MODE_BRIDGE}, true)
	for i, place := range []struct {
		host *lab.Namespace
		name string
	}{{hosts.A, "macv0"}, {hosts.B, "eth0"}} {
		check(t, place.host.AddAddress(place.name, fmt.Sprintf("10.99.0.%d/24", i+1)))
		check(t, place.host.AddAddress(place.name, fmt.Sprintf("fd99::%d/64", i+1)))
	}
	a, err := Open("macv0", InNamespace(hosts.A.Path()), WithSendMode(SendTrains))
	check(t, err)
	t.Cleanup(func() { check(t, a.Close()) })
	expectTrains(t, &stations{hosts, deepen(newStation(t, a)), deepen(newStation(t, open(t, hosts.B)))}, "10.99.0.2", "fd99::2")
}

// expectTrains sends bursts from A to addresses of B, which leave in trains, and loses nothing.
func expectTrains(t *testing.T, l *stations, dests ...string) {
	t.Helper()
	for _, dest := range dests {
		ah := l.a.ah(dest)
		for _, length := range []int{4, 64, 1001, 1024} {
			// Of each window, one packet may be sent separately.
			if n := inTrains(t, l.a.device, func() { checkHeaders(t, windows(t, l.a, l.b, ah, length, 8), 64) }); n < onlyCut(8*window-8) {
				t.Errorf("%d bytes to %s: got %d packets in trains", length, dest, n)
			}
		}
		check(t, ah.Close())
	}
	lossless(t, l.a, l.b)
}
