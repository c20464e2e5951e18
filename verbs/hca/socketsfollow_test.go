// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A program that waits, as the leader or for the worker, receives packets that arrive after sockets were replaced or
// added.
func TestWaitersOutliveSockets(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]Option{"leader": nil, "worker": {WithoutInline()}} {
		t.Run(name, func(t *testing.T) {
			hosts := newWidePair(t)
			options = append(options, fewFrames)
			a, b := newStation(t, open(t, hosts.A, options...)), newStation(t, open(t, hosts.B, options...))
			ah := a.ah("10.77.0.2")
			for i, change := range []func(){
				func() { check(t, setQueues(t, hosts.B, 2, 2)) },
				func() { setMTUs(t, hosts, 2200) },
				func() { check(t, setQueues(t, hosts.B, 3, 3)) },
				func() { setMTUs(t, hosts, 4200) },
			} {
				got := make(chan []verbs.WC, 1)
				begin := func() {
					b.receive(0)
					go func() { got <- b.wait(1) }()
				}
				begin()
				eventually(t, "waiting", func() bool {
					select {
					case <-got: // the last change may have caused several messages
						begin()
					default:
					}
					return waiting("verbs.(*CQ).Wait") == 1
				})
				change()
				sockets, mtu := 2+i/2, []verbs.MTU{verbs.MTU1024, verbs.MTU2048, verbs.MTU2048, verbs.MTU4096}[i]
				eventually(t, "the change", func() bool {
					return socketsOf(b.device) == sockets && b.port().ActiveMTU.Bytes() == min(mtu.Bytes(), carried(t, 4096)) &&
						a.port().State == verbs.PortActive && b.port().State == verbs.PortActive
				})
				for done := false; !done; {
					a.post(a.send(1, ah, b))
					a.wait(1)
					select {
					case wcs := <-got:
						expect(t, wcs, ok(0))
						done = true
					default:
					}
				}
			}
		})
	}
}

// Trains end when the interface sends through several queues, and SendReason is that.
func TestTrainsFollowQueues(t *testing.T) {
	t.Parallel()
	hosts := newWidePair(t)
	check(t, setQueues(t, hosts.A, 2, 1))
	a := newStation(t, open(t, hosts.A, fewFrames))
	b := newStation(t, open(t, hosts.B, fewFrames))
	sendsAs(t, a.device, cutting())
	check(t, setQueues(t, hosts.B, 2, 2))
	check(t, setQueues(t, hosts.A, 2, 2))
	sendsAs(t, a.device, SendAFXDP)
	attr, err := provider.Do(a.device, provider.QueryDevice, provider.None{})
	check(t, err)
	if attr.SendReason != "eth0 sends through 2 queues, in which packets could overtake each other; ethtool -L changes it" {
		t.Errorf("got the reason %s", attr.SendReason)
	}
	flows(t, &stations{hosts, a, b}, a.ah("10.77.0.2"))
}

// The queues of a TAP are its descriptors; sockets follow when these are opened and closed.
func TestTapQueuesAreFollowed(t *testing.T) {
	t.Parallel()
	needs.TUN(t)
	host := labtest.New(t, "labtest-tap")
	tap := &netlink.Tuntap{LinkAttrs: attrs("eth0", 1500), Mode: netlink.TUNTAP_MODE_TAP, Queues: 3, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_MULTI_QUEUE}
	check(t, host.Do(func() error { return host.Netlink().LinkAdd(tap) }))
	t.Cleanup(func() {
		for _, fd := range tap.Fds {
			_ = fd.Close() // some are closed twice
		}
	})
	check(t, host.Netlink().LinkSetUp(eth0(t, host)))
	check(t, host.AddAddress("eth0", "10.77.0.1/24"))
	card := open(t, host)
	sockets := func(want int) {
		t.Helper()
		eventually(t, "sockets", func() bool { return socketsOf(card) == want })
	}
	sockets(3)
	check(t, tap.Fds[2].Close())
	sockets(2)
	check(t, tap.Fds[1].Close())
	sockets(1)
	for want := 2; want < 4; want++ {
		attachTap(t, host, "eth0")
		sockets(want)
	}
}

// attachTap adds a queue to a TAP, and returns its descriptor.
func attachTap(t *testing.T, host *lab.Namespace, name string) (fd int) {
	t.Helper()
	request, err := unix.NewIfreq(name)
	check(t, err)
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_MULTI_QUEUE)
	check(t, host.Do(func() error {
		var err error
		fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		t.Cleanup(func() { check(t, unix.Close(fd)) })
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}))
	return fd
}

// Changes while the interface is down are followed when it is up.
func TestSocketsFollowWhenUp(t *testing.T) {
	t.Parallel()
	hosts := newWidePair(t)
	a, b := newStation(t, open(t, hosts.A, fewFrames)), newStation(t, open(t, hosts.B, fewFrames))
	ah := a.ah("10.77.0.2")
	for _, row := range []struct {
		queues uint32
		mtu    int
		rdma   verbs.MTU
	}{{3, 2200, verbs.MTU2048}, {4, 1500, verbs.MTU1024}, {5, 4200, verbs.MTU4096}} {
		check(t, hosts.B.Netlink().LinkSetDown(eth0(t, hosts.B)))
		check(t, setQueues(t, hosts.B, row.queues, row.queues))
		setMTUs(t, hosts, row.mtu)
		eventually(t, "PORT_DOWN", func() bool { return b.port().State == verbs.PortDown && b.port().InterfaceMTU == row.mtu })
		check(t, hosts.B.Netlink().LinkSetUp(eth0(t, hosts.B)))
		eventually(t, "the change", func() bool {
			port := b.port()
			return port.State == verbs.PortActive && port.ActiveMTU.Bytes() == min(row.rdma.Bytes(), carried(t, 4096)) && socketsOf(b.device) == int(row.queues)
		})
		flows(t, &stations{hosts, a, b}, ah)
	}
}

// A card may be closed while its sockets are replaced: nothing is left behind.
func TestCloseWhileSocketsAreReplaced(t *testing.T) {
	hosts := newWidePair(t)
	before := labtest.Descriptors()
	for i := range 20 {
		card, err := Open("eth0", InNamespace(hosts.B.Path()))
		check(t, err)
		if i%2 == 0 {
			check(t, setQueues(t, hosts.B, 4, 4))
		}
		check(t, hosts.B.Netlink().LinkSetMTU(eth0(t, hosts.B), 9000))
		for range i {
			card.Progress()
		}
		check(t, card.Close())
		check(t, hosts.B.Netlink().LinkSetMTU(eth0(t, hosts.B), 1500))
		eventually(t, "queues without sockets", func() bool { return setQueues(t, hosts.B, 1, 1) == nil })
	}
	eventually(t, "descriptors closed", func() bool { return len(labtest.Leaked(before, labtest.Descriptors())) == 0 })
}
