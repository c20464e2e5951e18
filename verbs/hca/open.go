//go:build linux

package hca

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"runtime"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/mcast/membership"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Open makes a card on a network interface. It needs CAP_NET_RAW (sockets), CAP_BPF, CAP_PERFMON
// and CAP_NET_ADMIN (XDP program, neighbours), and CAP_IPC_LOCK or enough RLIMIT_MEMLOCK (frames:
// 12 MiB, more with several queues, see WithFrames). InNamespace and Tuning need CAP_SYS_ADMIN too.
// One error names all that is missing.
//
// Any Ethernet interface will do. On a bond or team, and on a VLAN of one, XDP is generic, and
// frames are not checked to be for one of the host's MACs. A slave of a bond or team and an ipvlan
// of mode l3 are refused. The interface may have at most 1024 receive queues; each gets a socket.
//
// The card follows the interface: its link, addresses, name, MTU and number of receive queues (ethtool
// -L). For a larger MTU than before, the sockets are replaced, for which memory for both is needed. For
// some milliseconds, packets that arrive are dropped and counted then (drop_no_ring); those to send
// wait. If that is impossible (too little locked memory, a driver that refuses), the RDMA MTU stays, and
// an event (EventMTUChange) and a log entry say so. Packets that come on a veth's new queue before the
// card has noticed it pass to the network stack. If a receive queue cannot get a socket, the port is down
// until it can. The kernel refuses to take a queue away that has a socket (ethtool -L: EINVAL): close the
// card for that.
//
// While the card is open, RoCEv2 packets for the interface's addresses do not reach the network
// stack. All other packets do.
//
// A VLAN interface, such as eth0.42 (802.1Q), can be opened like any other. Addresses, groups and
// neighbours are the VLAN interface's. XDP runs on the interface below, on which no other card can
// be opened then, neither on itself nor on another of its VLANs: EBUSY. If the NIC takes the tags
// out of received frames (receive offload), XDP does not see them: the VLAN's packets pass to the
// host and count as pass_vlan, and a card on an untagged interface takes packets of any VLAN for its
// own. Turn the offload off: ethtool -K eth0 rxvlan off. On a veth or a bridge, the sending end or
// the bridge's port leaves the tag out: ethtool -K … txvlan off there.
func Open(name string, list ...Option) (*Card, error) {
	o := newOptions(list)
	modes, err := o.check()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	b := &builder{name: name, options: o, modes: modes, multiBuffer: xsk.MultiBufferSupported}
	if err := b.checkEntry(); err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	if b.inside, err = host.Enter(o.namespace); err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	if err := b.inside.Do(b.build); err != nil {
		return nil, fmt.Errorf("open %s: %w", name, errors.Join(err, b.undo()))
	}
	card, err := newCard(b.host(), o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	b.logModes()
	return card, nil
}

// builder opens the parts of a card, on a thread in its namespace.
type builder struct {
	name    string
	options options
	modes   modes
	// multiBuffer says whether the kernel takes frames of several chunks.
	multiBuffer func() (bool, error)

	inside  *host.Namespace // where all is opened, also later
	netlink *netlink.Handle
	queries *host.Queries
	below   *host.Queries // about the interface below a VLAN's
	// followers tell of changes of the interface, and of the one below a VLAN's.
	followers []*host.Subscription
	routers   *host.Routers
	link      netlink.Link // has the addresses
	base      netlink.Link // has the NIC's queues: link, or the interface below a VLAN
	vlan      uint16
	maxMTU    wire.MTU // what the sockets are opened for
	mostMTU   wire.MTU // what they can be replaced for
	queues    queues
	generic   error // why XDP must be generic; nil if it need not
	steering  *bpf.Steering
	sockets   []*xsk.Socket
	packets   *link.Packets // nil: frames leave through sockets only
	sending   sending

	memberships *membership.Memberships
	journals    journals
	tuned       func() error
}

// build opens everything. The XDP program that it attaches passes all packets until the card adds
// addresses.
func (b *builder) build() (err error) {
	b.tuned = func() error { return nil }
	if b.netlink, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	for _, step := range []func() error{
		b.findLink, b.checkLink, b.countQueues, b.checkPermission, b.checkMultiBuffer, b.warnOfConflicts,
		b.listen, b.openJournals, b.loadProgram, b.openSockets, b.openSending, b.openMemberships, b.tune,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// undo closes what a failed build has opened.
func (b *builder) undo() (err error) {
	for _, s := range b.sockets {
		err = errors.Join(err, s.Close())
	}
	if b.packets != nil {
		err = errors.Join(err, b.packets.Close())
	}
	b.sending.close()
	if b.memberships != nil {
		err = errors.Join(err, b.memberships.Close())
	}
	if b.steering != nil {
		err = errors.Join(err, b.steering.Close())
	}
	if b.netlink != nil {
		b.netlink.Close()
	}
	for _, f := range b.followers {
		f.Close()
	}
	if b.routers != nil {
		err = errors.Join(err, b.routers.Close())
	}
	if b.below != nil {
		b.below.Close()
	}
	if b.queries != nil {
		b.queries.Close()
	}
	if b.inside != nil {
		b.inside.Close()
	}
	return err
}

// host gives the host that was opened.
func (b *builder) host() *kernelHost {
	b.netlink.Close() // from now on the card uses queries
	xdp := link.NewXDP(b.sockets, b.packets)
	sockets := newSockets(&sockets{
		plan: b.plan(), inside: b.inside, steering: b.steering, link: xdp, log: b.options.log, carried: b.maxMTU, most: b.mostMTU,
	}, b.sockets)
	h := &kernelHost{
		filter: filter{b.steering}, queries: b.queries, base: b.below, anyMAC: b.generic != nil, followers: b.followers, routers: b.routers, log: b.options.log,
		xdp: xdp, sockets: sockets, sending: b.sending, vlan: b.vlan, tuned: b.tuned, journals: b.journals,
		memberships: b.memberships, managed: map[netip.Addr]bool{},
	}
	h.name.Store(&b.name)
	return h
}

// listen starts to follow the interface.
func (b *builder) listen() (err error) {
	index := b.link.Attrs().Index
	if b.queries, err = host.OpenQueries(index); err != nil {
		return err
	}
	indexes := []int{index}
	if b.base != b.link {
		indexes = append(indexes, b.base.Attrs().Index)
		if b.below, err = host.OpenQueries(indexes[1]); err != nil {
			return err
		}
	}
	for _, index := range indexes {
		follower, err := host.Follow(index)
		if err != nil {
			return err
		}
		b.followers = append(b.followers, follower)
	}
	b.routers, err = host.ListenToRouters(wire.UDPPort)
	return err
}

// fitMTU finds the largest RDMA MTU that fits the interface, and refuses a requested one that does
// not.
func (b *builder) fitMTU(interfaceMTU int) error {
	fits, err := fittingMTU(b.name, interfaceMTU, wire.MTU4096)
	if err == nil {
		err = checkAskedMTU(b.name, interfaceMTU, b.options.mtu, fits)
	}
	if err != nil {
		return err
	}
	b.maxMTU = max(cmp.Or(b.options.mtu, fits), wire.MTU1024)
	return nil
}

// checkMultiBuffer finds the largest RDMA MTU that the device can come to. It lowers one of 4096, whose
// packets do not fit one chunk, to 2048 if the kernel does not support frames of several chunks (Linux
// 6.6).
func (b *builder) checkMultiBuffer() error {
	b.mostMTU = cmp.Or(b.options.mtu, wire.MTU4096)
	if b.mostMTU < wire.MTU4096 {
		return nil
	}
	supported, err := b.multiBuffer()
	if err != nil {
		return err
	}
	if supported {
		return nil
	}
	b.mostMTU = wire.MTU2048
	if b.maxMTU < wire.MTU4096 {
		return nil
	}
	b.maxMTU = wire.MTU2048
	if b.options.mtu == wire.MTU4096 {
		return fmt.Errorf("RDMA MTU 4096: %w; ask for 2048", xsk.ErrMultiBuffer)
	}
	b.options.log.Warn("RDMA MTU is limited to 2048: an MTU of 4096 needs Linux 6.6", "device", b.name)
	return nil
}

func (b *builder) loadProgram() (err error) {
	if b.steering, err = bpf.Load(bpf.Config{
		VLAN: b.vlan, Queues: b.queues.most, AnyMAC: b.generic != nil,
		Renewable: b.base.Type() == "veth" && b.queues.most > b.queues.count,
	}); err != nil {
		return err
	}
	mode := b.modes.xdp
	if b.generic != nil {
		mode = bpf.Generic
	}
	return b.steering.Attach(b.base.Attrs().Index, mode)
}

// openMemberships gets ready to join groups, and removes what a killed process left.
func (b *builder) openMemberships() (err error) {
	b.memberships, err = membership.Open(membership.Config{
		Interface: b.name, Namespace: b.options.namespace, Via: b.modes.membership,
		StateDir: b.options.stateDir, Log: b.options.log,
	})
	return err
}

// tune sets the kernel's knobs.
func (b *builder) tune() (err error) {
	b.tuned, err = b.options.tuning.apply(b.base.Attrs().Name, b.journals.knobs)
	return err
}

// logModes logs the modes in use, and warns of those that are slow.
func (b *builder) logModes() {
	log := b.options.log.With("device", b.name)
	if why := cmp.Or(b.generic, b.steering.Fallback()); why != nil && b.modes.xdp == bpf.Auto {
		log.Warn("XDP runs in generic mode, which is slow", "because", why)
	}
	if now := runtime.GOMAXPROCS(0); now < min(2, runtime.NumCPU()) && b.options.worker {
		log.Warn("GOMAXPROCS is low: a program that computes delays the card's worker by 10 ms and more; set it to 2 or more", "gomaxprocs", now)
	}
	if why := b.steering.Uncounted(); why != nil {
		log.Warn("some lost packets will not be counted", "because", why)
	}
	info := b.sockets[0].Attached()
	log.Info("device is open", "xdp", b.steering.AttachedMode(), "zerocopy", info.ZeroCopy, "multibuffer", info.MultiBuffer, "queues", len(b.sockets))
}
