// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/mcast/membership"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Open opens an interface. It needs CAP_NET_RAW (sockets), CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (XDP program,
// neighbours), and CAP_IPC_LOCK or a sufficient RLIMIT_MEMLOCK; a namespace and tuning also need CAP_SYS_ADMIN. The
// error names all missing privileges. The XDP program passes all packets until the card adds addresses.
func Open(name string, c Config) (*Interface, error) {
	modes, err := c.modes()
	if err != nil {
		return nil, err
	}
	b := &builder{name: name, config: c, modes: modes, multiBuffer: xsk.MultiBufferSupported}
	if err := b.checkEntry(); err != nil {
		return nil, err
	}
	if b.inside, err = host.Enter(c.Namespace); err != nil {
		return nil, err
	}
	if err := b.inside.Do(b.build); err != nil {
		return nil, errors.Join(err, b.undo())
	}
	return b.opened(), nil
}

// builder opens the parts of a card, on a thread in its namespace.
type builder struct {
	name   string
	config Config
	modes  modes
	// multiBuffer reports whether the kernel supports frames of several chunks.
	multiBuffer func() (bool, error)

	inside  *host.Namespace // for all descriptors, also later ones
	netlink *netlink.Handle
	queries *host.Queries
	below   *host.Queries // queries about the interface below a VLAN's
	// followers notify of changes of the interface, and of the one below a VLAN's.
	followers []*host.Subscription
	routers   *host.Routers
	link      netlink.Link // has the addresses
	base      netlink.Link // has the NIC's queues: link, or the interface below a VLAN
	vlan      uint16
	maxMTU    wire.MTU // for which the sockets are opened
	mostMTU   wire.MTU // up to which they can be replaced
	queues    queues
	workers   int
	driver    string // of base; empty if unknown
	generic   error  // the reason why XDP must be generic, or nil
	steering  *bpf.Steering
	sockets   []*xsk.Socket
	packets   *link.Packets // nil: frames leave through sockets only
	sending   sending

	memberships *membership.Memberships
	journals    journals
	tuned       func() error
}

// build opens all parts. The XDP program that it attaches passes all packets until the card adds addresses.
func (b *builder) build() (err error) {
	b.tuned = func() error { return nil }
	if b.netlink, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	for _, step := range []func() error{
		b.findLink, b.checkLink, b.countQueues, b.checkPermission, b.checkPort, b.checkMultiBuffer, b.warnOfConflicts,
		b.listen, b.openJournals, b.loadProgram, b.openSockets, b.openSending, b.openMemberships, b.tune,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// undo closes the parts of a failed build.
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

// opened returns the opened interface.
func (b *builder) opened() *Interface {
	b.netlink.Close() // from now on the card uses queries
	sockets := newSockets(&sockets{
		plan: b.plan(), inside: b.inside, steering: b.steering, links: b.links(), log: b.config.Log, carried: b.maxMTU, most: b.mostMTU,
	}, b.sockets)
	i := &Interface{
		filter: filter{b.steering}, queries: b.queries, base: b.below, followers: b.followers, routers: b.routers, log: b.config.Log,
		generic: b.generic, wanted: b.modes.xdp, sockets: sockets, sending: b.sending, vlan: b.vlan, tuned: b.tuned, journals: b.journals,
		memberships: b.memberships, managed: map[netip.Addr]bool{},
	}
	i.name.Store(&b.name)
	return i
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

// fitMTU finds the largest RDMA MTU that fits the interface, and rejects a requested one that does not.
func (b *builder) fitMTU(interfaceMTU int) error {
	fits, err := (&network.Port{Name: b.name, MTU: interfaceMTU, Carried: wire.MTU4096}).RDMAMTU()
	if err == nil {
		err = checkAskedMTU(b.name, interfaceMTU, b.config.MTU, fits)
	}
	if err != nil {
		return err
	}
	b.maxMTU = max(cmp.Or(b.config.MTU, fits), wire.MTU1024)
	return nil
}

// checkMultiBuffer finds the largest RDMA MTU that the device can have. It reduces 4096, whose packets do not fit one
// chunk, to 2048 if the kernel does not support frames of several chunks (Linux 6.6).
func (b *builder) checkMultiBuffer() error {
	b.mostMTU = cmp.Or(b.config.MTU, wire.MTU4096)
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
	if b.config.MTU == wire.MTU4096 {
		return fmt.Errorf("RDMA MTU 4096: %w; use 2048", xsk.ErrMultiBuffer)
	}
	b.config.Log.Warn("RDMA MTU is limited to 2048: an MTU of 4096 needs Linux 6.6", "device", b.name)
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

// openMemberships prepares for joining groups, and removes memberships that a killed process left.
func (b *builder) openMemberships() (err error) {
	b.memberships, err = membership.Open(membership.Config{
		Interface: b.name, Namespace: b.config.Namespace, Via: b.modes.membership,
		StateDir: b.config.StateDir, Log: b.config.Log,
	})
	return err
}

// tune changes the kernel's settings.
func (b *builder) tune() (err error) {
	b.tuned, err = b.config.Tuning.apply(b.base.Attrs().Name, b.journals.knobs)
	return err
}

// checkAskedMTU rejects a requested RDMA MTU that does not fit the interface.
func checkAskedMTU(name string, interfaceMTU int, asked, fits wire.MTU) error {
	if asked > fits {
		return fmt.Errorf("%w: RDMA MTU %v does not fit: an interface MTU of %d allows %v, %v needs %d; ip link set dev %s mtu %[6]d",
			verbs.ErrInvalid, asked, interfaceMTU, fits, asked, asked.Bytes()+wire.MTUOverhead, name)
	}
	return nil
}
