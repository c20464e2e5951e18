// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// setQueues does the same as ethtool -L eth0 rx … tx ….
func setQueues(t testing.TB, host *lab.Namespace, receive, send uint32) error {
	t.Helper()
	return host.Do(func() error {
		tool, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer tool.Close()
		_, err = tool.SetChannels("eth0", ethtool.Channels{RxCount: receive, TxCount: send})
		return err
	})
}

// newWidePair returns a pair that can have eight queues. B has one, and A receives on all, since a veth has at least as
// many receive queues as its peer has send queues.
func newWidePair(t testing.TB) *labtest.PairLab {
	t.Helper()
	hosts := labtest.Pair(t, lab.WithQueues(8))
	check(t, setQueues(t, hosts.A, 8, 1))
	check(t, setQueues(t, hosts.B, 1, 1))
	return hosts
}

// fewFrames is for cards with many sockets, which would otherwise need much memory.
var fewFrames = WithFrames(256)

// socketsOf returns the number of a card's sockets.
func socketsOf(card *Card) int {
	n := 0
	links, _ := card.host.Links(0) // an interface's links again
	card.engine.Do(func() {
		for _, l := range links {
			n += len(l.Descriptors())
		}
	})
	return n
}

// firstSocket returns the descriptor of the socket of queue 0.
func firstSocket(card *Card) (fd int) {
	card.engine.Do(func() { fd = card.host.Link().Descriptors()[0] })
	return fd
}

// flow sends messages until it is stopped; its receiver handles them.
type flow struct {
	testing.TB
	from, to *station
	sentBy   *lab.Namespace
	before   uint64 // lost by the sender's link
	stop     atomic.Bool
	done     chan struct{}
}

// flowPause is the time between two bursts, and between two polls for them: sockets are replaced in milliseconds.
const flowPause = 200 * time.Microsecond

// startFlow starts to send messages of these lengths, in bursts.
func startFlow(t testing.TB, sentBy *lab.Namespace, from, to *station, lengths ...int) *flow {
	t.Helper()
	f := &flow{TB: t, from: from, to: to, sentBy: sentBy, before: lostBy(t, sentBy), done: make(chan struct{})}
	ah := from.ah("10.77.0.2")
	receiver := make(chan struct{})
	go func() {
		defer close(receiver)
		receive := []verbs.RecvWR{{SGList: []verbs.SGE{to.mr.SGE(0, 3*slotLen)}}}
		for !f.stop.Load() {
			var wcs [depth]verbs.WC
			n, _ := to.cq.Poll(wcs[:])
			for to.qp.PostRecv(receive) == nil {
			}
			if n == 0 {
				time.Sleep(flowPause)
			}
		}
	}()
	go func() {
		defer close(f.done)
		for i := 0; !f.stop.Load(); i++ {
			wrs := make([]verbs.SendWR, depth)
			for j := range wrs {
				wrs[j] = from.send(uint64(j), ah, to, from.mr.SGE(0, lengths[i%len(lengths)]))
			}
			check(t, from.qp.PostSend(wrs))
			from.wait(depth)
			time.Sleep(flowPause)
		}
		<-receiver
	}()
	return f
}

// delivered waits for further messages.
func (f *flow) delivered() {
	f.Helper()
	before := f.to.device.engine.Counters().Delivered
	eventually(f, "messages", func() bool { return f.to.device.engine.Counters().Delivered > before+100 })
}

// end stops the flow, and waits until each message is counted.
func (f *flow) end() {
	f.Helper()
	f.stop.Store(true)
	<-f.done
	var account string
	for deadline := time.Now().Add(waitTimeout); ; time.Sleep(time.Millisecond) {
		sent, found, text := f.account()
		if account = text; sent == found {
			break
		}
		if time.Now().After(deadline) {
			f.Fatalf("sent %d, accounted for %d: %s", sent, found, account)
		}
	}
	f.Log(account)
}

// account returns the number of sent messages, and of those counted at either end.
func (f *flow) account() (sent, found uint64, text string) {
	f.Helper()
	from, err := f.from.device.Statistics()
	check(f, err)
	to, err := f.to.device.Statistics()
	check(f, err)
	found = to.Engine.Received + to.Socket.RxDropped + to.Socket.RxRingFull + to.Socket.Malformed + from.Engine.Dropped()
	for _, c := range to.Steering {
		if c.Name != bpf.Redirected.String() && c.Name != bpf.PassNotRoCE.String() {
			found += c.Value
		}
	}
	byLink := lostBy(f, f.sentBy) - f.before
	found += byLink - min(byLink, from.Engine.Drops[datapath.DropInterface])
	return from.Engine.Sent, found, fmt.Sprintf("sender: %v; %d by its link; receiver: %v", from, byLink, to)
}

// The number of receive queues grows: each gets a socket, existing sockets stay, and every packet is accounted for. The
// kernel does not remove queues that have sockets.
func TestQueuesAreFollowed(t *testing.T) {
	t.Parallel()
	hosts := newWidePair(t)
	a, b := newStation(t, open(t, hosts.A, fewFrames)), newStation(t, open(t, hosts.B, fewFrames))
	f := startFlow(t, hosts.A, a, b, 64, 1024)
	first := firstSocket(b.device)
	for _, count := range []uint32{2, 5, 5, 8} {
		check(t, setQueues(t, hosts.B, count, count))
		eventually(t, "sockets", func() bool { return socketsOf(b.device) == int(count) })
		f.delivered()
		if firstSocket(b.device) != first {
			t.Error("the socket of queue 0 was replaced")
		}
	}
	f.end()
	refused(t, setQueues(t, hosts.B, 2, 2), unix.EINVAL)
	if socketsOf(a.device) != 8 || socketsOf(b.device) != 8 || b.port().State != verbs.PortActive {
		t.Errorf("got %d and %d sockets, port %+v", socketsOf(a.device), socketsOf(b.device), b.port())
	}
	check(t, setQueues(t, hosts.A, 8, 8))
	sendFlows(t, hosts, b)
}

// sendFlows sends packets of many flows to a station, and expects all of them, and some on each queue.
func sendFlows(t *testing.T, hosts *labtest.PairLab, b *station) {
	t.Helper()
	const flows = 400
	r := newRawSender(t, hosts.A, hosts.B, b.qp.Number())
	before, received := byQueue(t, hosts.B), b.device.engine.Counters().Received
	for i := range flows {
		flow := r.path("10.77.0.1", "10.77.0.2")
		flow.FlowLabel = uint32(i + 1)
		r.send(frame(flow, r.datagram(), nil))
		eventually(t, fmt.Sprint("packet ", i), func() bool { return b.device.engine.Counters().Received == received+uint64(i)+1 })
	}
	for name, n := range byQueue(t, hosts.B) {
		if n == before[name] {
			t.Errorf("%s: no packets", name)
		}
	}
}

// byQueue returns the number of packets received on each receive queue of a host's eth0.
func byQueue(t *testing.T, host *lab.Namespace) map[string]uint64 {
	t.Helper()
	queues := map[string]uint64{}
	check(t, host.Do(func() error {
		all, err := ethtool.Stats("eth0")
		for name, n := range all {
			if strings.HasPrefix(name, "rx_queue_") && strings.HasSuffix(name, "_xdp_packets") {
				queues[name] = n
			}
		}
		return err
	}))
	return queues
}

// The MTU is raised above that at opening, lowered and raised again while messages flow: the RDMA MTU follows, with an
// event, and every packet is accounted for.
func TestMTUIsRaised(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]Option{
		"native": nil, "generic": {WithXDPMode(XDPGeneric)}, "AF_XDP only": {WithSendMode(SendAFXDP)},
		"explicit MTU": {WithMTU(wire.MTU1024)}, "without a worker": {WithoutInline()},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := newWidePair(t)
			check(t, setQueues(t, hosts.B, 3, 1))
			options = append(options, fewFrames)
			a, b := newStation(t, open(t, hosts.A, options...)), newStation(t, open(t, hosts.B, options...))
			most := carried(t, 4096)
			if name == "explicit MTU" {
				most = 1024
			}
			for _, s := range []*station{a, b} {
				if port := s.port(); port.MaxMTU.Bytes() != most || port.ActiveMTU != verbs.MTU1024 {
					t.Errorf("port %+v", port)
				}
			}
			f := startFlow(t, hosts.A, a, b, 64, 1000)
			for _, row := range []struct{ link, rdma int }{{2200, 2048}, {4200, 4096}, {1500, 1024}, {9000, 4096}, {9000, 4096}, {1500, 1024}} {
				setMTUs(t, hosts, row.link)
				for _, s := range []*station{a, b} {
					eventually(t, fmt.Sprint("MTU ", row.link), func() bool {
						port := s.port()
						return port.InterfaceMTU == row.link && port.ActiveMTU.Bytes() == min(row.rdma, most) && port.State == verbs.PortActive
					})
				}
				f.delivered()
			}
			f.end()
			setMTUs(t, hosts, 4200)
			eventually(t, "the MTU", func() bool { return a.port().ActiveMTU.Bytes() == most && b.port().ActiveMTU.Bytes() == most })
			f = startFlow(t, hosts.A, a, b, most)
			f.delivered()
			f.end()
			if socketsOf(a.device) != 8 || socketsOf(b.device) != 3 {
				t.Errorf("got %d and %d sockets", socketsOf(a.device), socketsOf(b.device))
			}
		})
	}
}

func setMTUs(t testing.TB, hosts *labtest.PairLab, mtu int) {
	t.Helper()
	check(t, hosts.A.Netlink().LinkSetMTU(eth0(t, hosts.A), mtu))
	check(t, hosts.B.Netlink().LinkSetMTU(eth0(t, hosts.B), mtu))
}
