package hca

import (
	"fmt"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// With 100 receive queues what arrives on the last is delivered like what arrives on the
// first, in no more memory than a few queues take.
func TestManyQueues(t *testing.T) {
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
		t.Error("no flow came to a queue beyond the 64th")
	}
}

// More queues than are covered are refused, with the command.
func TestTooManyQueues(t *testing.T) {
	hosts := labtest.Pair(t)
	veth := netlink.NewVeth(attrs("wide0", 1500))
	veth.NumRxQueues, veth.NumTxQueues = maxQueues+1, 1
	addLink(t, hosts.A, veth, true)
	untouched(t, hosts.A, "wide0", func() {
		_, err := Open("wide0", InNamespace(hosts.A.Path()))
		refused(t, err, unix.EOPNOTSUPP, "1025 receive queues", "ethtool -L wide0 combined 1024")
	})
}

// A queue that another socket holds is told of, and is not the end of the list.
func TestQueueThatIsHeld(t *testing.T) {
	hosts := labtest.Pair(t, lab.WithQueues(3))
	var held *xsk.Socket
	check(t, hosts.A.Do(func() (err error) {
		held, err = xsk.Open(xsk.Config{Interface: eth0(t, hosts.A).Attrs().Index, Queue: 1})
		return err
	}))
	untouched(t, hosts.A, "eth0", func() {
		_, err := Open("eth0", InNamespace(hosts.A.Path()))
		refused(t, err, unix.EBUSY, "queue 1 of 3", "holds the queue")
	})
	check(t, held.Close())
}

// A driver that tells how many queues there are is believed: one that cannot be bound is an
// error. One that does not may have fewer than it could have.
func TestQueueThatIsNotThere(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, guessed := range []bool{false, true} {
		b := &builder{name: "eth0", options: newOptions(nil), multiBuffer: xsk.MultiBufferSupported, maxMTU: wire.MTU1024}
		b.link = eth0(t, hosts.A)
		b.base = b.link
		b.queues = queues{count: 2, guessed: guessed}
		check(t, hosts.A.Do(func() error {
			if err := b.loadProgram(); err != nil {
				return err
			}
			err := b.openSockets()
			if guessed && (err != nil || len(b.sockets) != 1) {
				t.Errorf("guessed: %d sockets, %v", len(b.sockets), err)
			}
			if !guessed {
				refused(t, err, unix.EINVAL, "queue 1 of 2")
			}
			return b.undo()
		}))
	}
}

// The memory is bounded, whatever the number of queues, unless a size was asked for.
func TestFramesFor(t *testing.T) {
	for _, row := range []struct {
		queues             int
		chunk, asked, want uint32
	}{
		{1, 2048, 0, 2048}, {16, 2048, 0, 2048}, {17, 2048, 0, 1024}, {64, 2048, 0, 512}, {65, 2048, 0, 256},
		{100, 2048, 0, 256}, {512, 2048, 0, 64}, {1024, 2048, 0, 64}, {64, 4096, 0, 256}, {8, 4096, 0, 2048},
		{64, 2048, 4096, 4096}, {1, 2048, 64, 64},
	} {
		if got := framesFor(row.queues, row.chunk, row.asked); got != row.want {
			t.Errorf("%d queues, chunks of %d, asked for %d: %d frames, want %d", row.queues, row.chunk, row.asked, got, row.want)
		}
	}
}

// What the sockets lock is known before they are opened.
func TestLockedBytes(t *testing.T) {
	for _, row := range []struct {
		queues int
		mtu    wire.MTU
		want   uint64
	}{
		{1, wire.MTU1024, 12 << 20},
		{64, wire.MTU1024, 128<<20 + 4<<20 + 63*16*2048},
		{1, wire.MTU4096, 2*2048*4096 + 2*2048*4096},
	} {
		b := &builder{link: &netlink.GenericLink{}, base: &netlink.GenericLink{}, options: newOptions(nil), maxMTU: row.mtu, queues: queues{count: row.queues}}
		if got := b.lockedBytes(); got != row.want {
			t.Errorf("%d queues, %v: %d bytes, want %d", row.queues, row.mtu, got, row.want)
		}
	}
}
