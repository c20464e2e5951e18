// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"fmt"
	"testing"

	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// With 100 receive queues, packets on the last queue are delivered like those on the first, with no more memory than a
// few queues use.
func TestManyQueues(t *testing.T) {
	t.Parallel()
	const queues, flows = 100, 1200
	hosts := labtest.Pair(t, lab.WithQueues(queues))
	b := newStation(t, open(t, hosts.B))
	if n := len(b.device.host.Link().Descriptors()); n != queues {
		t.Fatalf("%d sockets on %d queues", n, queues)
	}
	r := newRawSender(t, hosts.A, hosts.B, b.qp.Number())
	for i := range flows {
		b.receive(0)
		flow := r.path("10.77.0.1", "10.77.0.2")
		flow.FlowLabel = uint32(i + 1)
		r.send(frame(flow, r.datagram(), nil))
		expect(t, b.wait(1), ok(0))
	}
	var statistics map[string]uint64
	check(t, hosts.B.Do(func() (err error) {
		statistics, err = ethtool.Stats("eth0")
		return err
	}))
	beyond := uint64(0)
	for queue := 64; queue < queues; queue++ {
		beyond += statistics[fmt.Sprintf("rx_queue_%d_xdp_packets", queue)]
	}
	if beyond == 0 {
		t.Error("no flow reached a queue beyond the 64th")
	}
}

// More receive queues than supported are refused; the error has the command to reduce them.
func TestTooManyQueues(t *testing.T) {
	hosts := labtest.Pair(t)
	veth := netlink.NewVeth(attrs("wide0", 1500))
	veth.NumRxQueues, veth.NumTxQueues = 1024+1, 1
	addLink(t, hosts.A, veth, true)
	untouched(t, hosts.A, "wide0", func() {
		_, err := Open("wide0", InNamespace(hosts.A.Path()), WithNetwork(NetworkXDP))
		refused(t, err, unix.EOPNOTSUPP, "1025 receive queues", "ethtool -L wide0 combined 1024")
	})
}

// A queue that another socket holds is named in the error, even if it is not the last.
func TestQueueThatIsHeld(t *testing.T) {
	hosts := labtest.Pair(t, lab.WithQueues(3))
	var held *xsk.Socket
	check(t, hosts.A.Do(func() (err error) {
		held, err = xsk.Open(xsk.Config{Interface: eth0(t, hosts.A).Attrs().Index, Queue: 1})
		return err
	}))
	untouched(t, hosts.A, "eth0", func() {
		_, err := Open("eth0", InNamespace(hosts.A.Path()))
		refused(t, err, unix.EBUSY, "queue 1 of 3", "is bound to the queue")
	})
	check(t, held.Close())
}
