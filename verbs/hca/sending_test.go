// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"encoding/binary"
	"testing"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// sendsAs waits until a card's bursts use a mode.
func sendsAs(t *testing.T, card *Card, mode SendMode) {
	t.Helper()
	eventually(t, "send mode "+string(mode), func() bool {
		attr, err := provider.Do(card, provider.QueryDevice, provider.None{})
		check(t, err)
		return attr.SendMode == string(mode)
	})
}

// burst sends numbered messages of one length in one list, and expects all of them in order.
func burst(t *testing.T, from, to *station, ah *verbs.AH, length int) {
	t.Helper()
	const count = depth
	slots := make([]int, count)
	wrs := make([]verbs.SendWR, count)
	for i := range count {
		slots[i] = i
		binary.BigEndian.PutUint32(from.slot(count+i), uint32(i))
		wrs[i] = from.send(uint64(i), ah, to, from.piece(count+i, length))
	}
	to.receive(slots...)
	from.post(wrs...)
	from.wait(count)
	for i, wc := range to.wait(count) {
		if _, payload := wc.Payload(to.slot(int(wc.ID))); len(payload) != length || binary.BigEndian.Uint32(payload) != uint32(i) {
			t.Fatalf("message %d: %d bytes, number %v", i, len(payload), payload[:min(4, len(payload))])
		}
	}
}

// inTrains returns the number of packets that leave in trains during a call.
func inTrains(t *testing.T, card *Card, do func()) uint64 {
	t.Helper()
	before, err := card.Statistics()
	check(t, err)
	do()
	after, err := card.Statistics()
	check(t, err)
	return after.Sent.InTrains - before.Sent.InTrains
}

// cutting returns the mode of bursts for which trains are wanted: before Linux 6.2 the kernel does not segment trains,
// and all packets leave through the AF_XDP socket.
func cutting() SendMode {
	if link.KernelCutsTrains() {
		return SendTrains
	}
	return SendAFXDP
}

// onlyCut returns how many of some packets leave in trains where trains are wanted.
func onlyCut(packets uint64) uint64 {
	if link.KernelCutsTrains() {
		return packets
	}
	return 0
}

// Trains start when the other end makes the kernel segment them, and stop when it no longer does.
func TestTrainsFollowTheOtherEnd(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	a := newStation(t, open(t, hosts.A))
	sendsAs(t, a.device, SendAFXDP)
	for range 2 {
		card, err := Open("eth0", InNamespace(hosts.B.Path()))
		check(t, err)
		sendsAs(t, a.device, cutting())
		b := newStation(t, card)
		for _, to := range []string{"10.77.0.2", "fd77::2"} {
			ah := a.ah(to)
			if n := inTrains(t, a.device, func() { burst(t, a, b, ah, 256) }); n != onlyCut(depth) {
				t.Errorf("to %s: got %d of %d packets in trains", to, n, depth)
			}
			check(t, ah.Close())
		}
		check(t, card.Close())
		sendsAs(t, a.device, SendAFXDP)
	}
}

// Each mode sends as its name says, and a burst arrives in each. Before Linux 6.2 no mode uses trains.
func TestSendModes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		sender   SendMode
		receiver XDPMode
		links    []lab.VethOption
		trains   bool
	}{
		{"automatic", SendAuto, XDPNative, nil, true},
		{"automatic, to generic XDP", SendAuto, XDPGeneric, nil, false},
		{"automatic, with two queues", SendAuto, XDPNative, []lab.VethOption{lab.WithQueues(2)}, false},
		{"AF_XDP only", SendAFXDP, XDPNative, nil, false},
		{"always", SendTrains, XDPNative, nil, true},
		{"always, with two queues", SendTrains, XDPNative, []lab.VethOption{lab.WithQueues(2)}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			hosts := labtest.Pair(t, row.links...)
			b := newStation(t, open(t, hosts.B, WithXDPMode(row.receiver)))
			a := newStation(t, open(t, hosts.A, WithSendMode(row.sender)))
			ah := a.ah("10.77.0.2")
			if row.sender == SendTrains {
				burst(t, a, b, ah, 4) // a kernel that cannot segment trains has to refuse this
			}
			row.trains = row.trains && link.KernelCutsTrains()
			sendsAs(t, a.device, map[bool]SendMode{true: SendTrains, false: SendAFXDP}[row.trains])
			for _, length := range []int{4, 64, 1024} {
				if n := inTrains(t, a.device, func() { burst(t, a, b, ah, length) }); (n > 0) != row.trains {
					t.Errorf("%d bytes: got %d packets in trains", length, n)
				}
			}
			if lost := dropsOf(b.device); len(lost) > 0 {
				t.Errorf("drops %v", lost)
			}
		})
	}
}

// addDiscipline adds a queueing discipline to a host's eth0 (tc qdisc add dev eth0 root pfifo).
func addDiscipline(t *testing.T, host *lab.Namespace) {
	t.Helper()
	check(t, host.Netlink().QdiscReplace(&netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: eth0(t, host).Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		QdiscType:  "pfifo",
	}))
}

// Trains bypass no queueing discipline unless the user requests them, and then packets sent in both ways stay in order.
func TestTrainsThroughADiscipline(t *testing.T) {
	t.Parallel()
	for mode, want := range map[SendMode]SendMode{SendAuto: SendAFXDP, SendTrains: cutting()} {
		hosts := labtest.Pair(t)
		addDiscipline(t, hosts.A)
		b := newStation(t, open(t, hosts.B))
		a := newStation(t, open(t, hosts.A, WithSendMode(mode)))
		ah := a.ah("10.77.0.2")
		for i := range 100 {
			burst(t, a, b, ah, 8+4*(i%60))
			message(t, a, b, ah, pattern(64, i))
		}
		sendsAs(t, a.device, want)
	}
}

// The other end's offload settings are followed too.
func TestTrainsFollowOffloads(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	a := newStation(t, open(t, hosts.A))
	set := func(on bool) {
		check(t, hosts.A.Do(func() error {
			tool, err := ethtool.NewEthtool()
			if err != nil {
				return err
			}
			defer tool.Close()
			return tool.Change("eth0", map[string]bool{"tx-udp-segmentation": on})
		}))
	}
	set(false)
	sendsAs(t, a.device, cutting())
	set(true)
	sendsAs(t, a.device, SendAFXDP)
}

// Resources for trains are released when the card is closed, and when opening fails.
func TestTrainsLeakNothing(t *testing.T) {
	hosts := labtest.Pair(t)
	before := labtest.Descriptors()
	for range 5 {
		card, err := Open("eth0", InNamespace(hosts.A.Path()), WithSendMode(SendTrains))
		check(t, err)
		check(t, card.Close())
		_, err = Open("eth0", InNamespace(hosts.A.Path()), WithSendMode(SendTrains), WithMembership(MembershipNetlink), WithSocketMode(SocketZeroCopy))
		refused(t, err, unix.EOPNOTSUPP, "zero-copy")
	}
	eventually(t, "descriptors closed", func() bool { return len(labtest.Leaked(before, labtest.Descriptors())) == 0 })
	_, err := Open("eth0", InNamespace(hosts.A.Path()), WithSendMode("gso"))
	refused(t, err, unix.EINVAL, "auto, af_xdp, trains")
}

// A sender that is far too fast for its receiver: every packet is delivered, or counted once by the receiver, or
// dropped by the sender's interface.
func TestTrainsBalance(t *testing.T) {
	const posts = 3000
	hosts := labtest.Pair(t)
	b := newStation(t, open(t, hosts.B, WithFrames(64)))
	a := newStation(t, open(t, hosts.A))
	cuts := link.KernelCutsTrains()
	sendsAs(t, a.device, map[bool]SendMode{true: SendTrains, false: SendAFXDP}[cuts])
	lostBefore := lostBy(t, hosts.A)
	ah := a.ah("10.77.0.2")
	wrs := make([]verbs.SendWR, depth)
	for i := range wrs {
		wrs[i] = a.send(uint64(i), ah, b, a.piece(i, 200))
	}
	b.receive(0, 1, 2, 3)
	for range posts {
		a.post(wrs...)
		a.wait(depth)
	}
	eventually(t, "all packets ended somewhere", func() bool {
		sender, err := a.device.Statistics()
		check(t, err)
		receiver, err := b.device.Statistics()
		check(t, err)
		if sender.Engine.Sent != posts*depth || cuts && sender.Sent.InTrains < posts*depth/2 {
			t.Fatalf("%v", sender)
		}
		refused := sender.Engine.Drops[datapath.DropInterface]
		byInterface := lostBy(t, hosts.A) - lostBefore
		sum := refused + byInterface - min(refused, byInterface) + receiver.Engine.Received + receiver.Socket.RxDropped + receiver.Socket.RxRingFull
		return sum == posts*depth
	})
}
