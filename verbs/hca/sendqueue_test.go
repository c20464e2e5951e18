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

// numbered takes messages whose immediate data only grows, and counts them.
type numbered struct {
	*station
	posted, came int // receives
	last         int
}

// take posts receives up to a window, and takes what has come.
func (n *numbered) take() {
	n.Helper()
	for _, wc := range completionsOf(n, n.cq) {
		check(n, wc.Err())
		if number := int(wc.ImmData); number <= n.last {
			n.Fatalf("message %d came after message %d", number, n.last)
		}
		n.last = int(wc.ImmData)
		n.came++
	}
	for ; n.posted < n.came+2*window; n.posted++ {
		n.receive(n.posted % window)
	}
}

// lost is what the card has dropped: it may have had no receive.
func (n *numbered) lost() int {
	n.Helper()
	got := counts(n, n.device)
	return int(got[datapath.DropNoReceive.String()] + got["rx_dropped"] + got["rx_ring_full"])
}

// newNumbered has room for all that can be on its way.
func newNumbered(t *testing.T, card *Card) *numbered {
	t.Helper()
	s := newStation(t, card)
	c := defaultCap()
	c.MaxRecvWR = 2 * window
	s.qp = s.newQP(c)
	check(t, s.qp.Activate(testQKey))
	return &numbered{station: s, last: -1}
}

// shape has a host's eth0 send at a megabit a second (tc qdisc add dev eth0 root tbf), with so many bytes
// at once, and so many in its queue.
func shape(t *testing.T, host *lab.Namespace, burst, limit uint32) {
	t.Helper()
	const rate = 1e6 / 8
	check(t, host.Netlink().QdiscReplace(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: eth0(t, host).Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       rate, Buffer: netlink.Xmittime(rate, burst), Limit: limit,
	}))
}

// droppedByDiscipline is what the discipline itself counts (tc -s qdisc).
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

// A discipline that drops: each packet arrives, or is in one counter, and those that arrive are in order.
// One that takes a train or drops it tells us; one that splits trains drops parts of them, and only it
// knows. Without trains the AF_XDP socket passes both by.
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
				t.Logf("%d posted, %d came, %d dropped; the discipline counts %d; %v", posted, b.came, dropped()-before,
					droppedByDiscipline(t, hosts.A), counts(t, b.device))
			}()
			eventually(t, "an end for every message", func() bool {
				b.take()
				return b.came+b.lost()+dropped()-before == posted
			})
			if (b.came+b.lost() < posted) != link.KernelCutsTrains() {
				t.Error("the discipline has not done what it is for")
			}
		})
	}
}

func droppedByUs(t *testing.T, s *station, _ *lab.Namespace) int {
	return int(s.device.engine.Counters().Drops[datapath.DropInterface])
}

// overload sends windows, and single messages between them, at least eight of each and until enough. It
// returns how many messages that are.
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

// A macvlan hands trains to the interface below it, where they are cut as that interface's own.
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
			// Of each window, one packet may leave by itself.
			if n := inTrains(t, l.a.device, func() { checkHeaders(t, windows(t, l.a, l.b, ah, length, 8), 64) }); n < onlyCut(8*window-8) {
				t.Errorf("%d bytes to %s: %d packets in trains", length, dest, n)
			}
		}
		check(t, ah.Close())
	}
	lossless(t, l.a, l.b)
}
