// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/nic"
	"github.com/roced/roced/verbs/hca/port"
	"github.com/roced/roced/verbs/hca/udpnet"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// Open creates a card on a network interface: by XDP if possible, else by UDP sockets, which need no privileges and
// work on any interface; NetworkUDP documents their limits. WithNetwork chooses. An interface can have one open card at
// a time, by XDP or UDP: a second Open returns EBUSY, or EADDRINUSE if UDP port 4791 of one of the addresses is in use.
// The rest of this comment describes XDP.
//
// XDP needs CAP_NET_RAW (sockets), CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (XDP program, neighbours), and CAP_IPC_LOCK
// or a sufficient RLIMIT_MEMLOCK (frames: 12 MiB, more with several queues, see WithFrames). InNamespace and Tuning
// also need CAP_SYS_ADMIN. The error names all missing privileges.
//
// All Ethernet interfaces are supported, except a slave of a bond or team, and an ipvlan of mode l3. On a bond or team,
// and on a VLAN of one, XDP is generic, and the destination MACs of frames are not checked. The interface can have up
// to 1024 receive queues; each gets a socket.
//
// The card follows the interface: its link, addresses, name, MTU and number of receive queues (ethtool -L). When the
// MTU increases, the sockets are replaced, which needs memory for both the old and the new ones. For some milliseconds,
// arriving packets are dropped and counted (drop_no_ring), and packets to send wait. If the replacement fails (too
// little locked memory, or the driver refuses), the RDMA MTU does not change, and an event (EventMTUChange) and a log
// entry report it. Packets on a new queue of a veth pass to the network stack until the card has noticed the queue.
// While a receive queue cannot get a socket, the port is down. The kernel refuses to remove a queue that has a socket
// (ethtool -L: EINVAL): close the card first.
//
// While the card is open, RoCEv2 packets for the interface's addresses do not reach the network stack. All other
// packets do.
//
// A VLAN interface, such as eth0.42 (802.1Q), can be opened like any other. Addresses, groups and neighbours are those
// of the VLAN interface. XDP runs on the interface below, on which no other card can be open at the same time, neither
// on itself nor on another of its VLANs: EBUSY. If the NIC removes the tags of received frames (receive offload), XDP
// does not see them: packets of the VLAN pass to the host and are counted as pass_vlan, and a card on an untagged
// interface receives packets of any VLAN. Disable the offload: ethtool -K eth0 rxvlan off. On a veth or a bridge,
// disable the offload of the sender, which is the other end or the bridge's port: ethtool -K … txvlan off.
func Open(name string, list ...Option) (*Card, error) {
	o := newOptions(list)
	card, err := o.open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return card, nil
}

func (o *options) open(name string) (*Card, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	on, err := o.openHost(name)
	if err != nil {
		return nil, err
	}
	if now := runtime.GOMAXPROCS(0); now < min(2, runtime.NumCPU()) && o.worker {
		o.log.Warn("GOMAXPROCS is low: a program that computes delays the card's worker by 10 ms and more; set it to 2 or more", "device", name, "gomaxprocs", now)
	}
	return newCard(on, *o)
}

// openHost opens the connection to the network. In mode auto, it falls back to UDP sockets if XDP is not possible.
func (o *options) openHost(name string) (network.Host, error) {
	if o.network == NetworkUDP {
		return o.openUDP(name)
	}
	on, err := nic.Open(name, o.nicConfig())
	if err == nil {
		return on, nil
	}
	if o.network == NetworkXDP || o.aboutXDP() || !withoutXDP(err) {
		return nil, err
	}
	if program, _ := nic.Attached(name, o.namespace); program != "" {
		return nil, fmt.Errorf("%w; and UDP sockets may receive no packets, since there is an XDP program, %s: if it belongs to roced, use that service; "+
			"if not, choose UDP sockets (WithNetwork, --network udp)", err, program)
	}
	other, udpErr := o.overUDP(name)
	if udpErr != nil {
		return nil, errors.Join(err, fmt.Errorf("over UDP sockets: %w", udpErr))
	}
	if o.workers > 1 {
		o.log.Warn("the device has one worker, since it uses UDP sockets", "device", name, "asked", o.workers)
		o.workers = 1
	}
	o.log.Warn("the device uses UDP sockets, since XDP is not available: single messages take longer, and completions have no source MACs and VLANs",
		"device", name, "because", err)
	return other, nil
}

// openUDP opens UDP sockets because the caller requested them.
func (o *options) openUDP(name string) (network.Host, error) {
	program, steering := nic.Attached(name, o.namespace)
	if steering {
		return nil, fmt.Errorf("%w: a device uses the interface by XDP (%s), so UDP sockets would receive no packets; close that device first", unix.EBUSY, program)
	}
	if program != "" {
		o.log.Warn("the interface has an XDP program; if it belongs to another roced, UDP sockets receive no packets", "device", name, "xdp", program)
	}
	return o.overUDP(name)
}

// overUDP opens UDP sockets, after undoing the changes that killed devices left. It logs those that it is not permitted
// to undo.
func (o *options) overUDP(name string) (network.Host, error) {
	nic.Undo(o.nicConfig())
	if left, _ := nic.Leftovers(name, o.nicConfig()); len(left) > 0 { // Open reports problems of the interface
		var what, undo []string
		for _, l := range left {
			what, undo = append(what, l.What), append(undo, l.Undo)
		}
		o.log.Warn("a killed device left changes on the interface that this process is not permitted to undo", "device", name,
			"left", strings.Join(what, ", "), "undo", strings.Join(undo, "; "))
	}
	o.neighbours = nil
	return udpnet.Open(name, o.udpConfig())
}

// Leftovers lists the changes that killed processes left on an interface, such as the addresses of groups, each with
// the command that undoes it. It changes nothing itself; the next device that is opened with CAP_NET_ADMIN in the
// interface's namespace undoes them. Without root it lists only the addresses of groups. It uses the options
// InNamespace and WithStateDir.
func Leftovers(name string, list ...Option) ([]nic.Leftover, error) {
	o := newOptions(list)
	left, err := nic.Leftovers(name, o.nicConfig())
	if err != nil {
		return nil, fmt.Errorf("leftovers on %s: %w", name, err)
	}
	return left, nil
}

// withoutXDP reports whether an error is due to missing privileges, or to a kernel or an interface without XDP support.
func withoutXDP(err error) bool {
	if errors.Is(err, nic.ErrSlave) {
		return false
	}
	for _, cause := range []error{unix.EPERM, unix.EACCES, unix.EOPNOTSUPP, unix.ENOSYS, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, xsk.ErrLockedMemory, verbs.ErrUnsupported} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

func (o *options) udpConfig() udpnet.Config { return udpnet.Config{Namespace: o.namespace, Log: o.log} }

// New creates a card on a host of an in-memory network (memnet.Network.AddHost) or of any other network. The card owns
// the host, and closes it, also if New fails. Options that concern an interface and its kernel are rejected. Without
// WithLogger nothing is logged.
func New(on network.Host, list ...Option) (*Card, error) {
	o := newOptions(append([]Option{WithLogger(slog.New(slog.DiscardHandler))}, list...))
	if err := o.checkApart(); err != nil {
		return nil, fmt.Errorf("open %s: %w", on.Name(), errors.Join(err, on.Link().Close(), on.Close()))
	}
	o.neighbours = nil
	card, err := newCard(on, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", on.Name(), err)
	}
	return card, nil
}

// OpenPair creates the cards of two hosts on a new in-memory network.
func OpenPair(a, b []netip.Addr, options ...Option) (*Card, *Card, error) {
	n := memnet.New(0)
	var cards [2]*Card
	for i, addresses := range [][]netip.Addr{a, b} {
		host, err := n.AddHost([]string{"memory-a", "memory-b"}[i], addresses...)
		if err == nil {
			cards[i], err = New(host, options...)
		}
		if err != nil {
			return nil, nil, errors.Join(err, n.Close())
		}
	}
	return cards[0], cards[1], nil
}

// checkApart is check for a card without an interface: it also rejects options that concern an interface and its
// kernel.
func (o *options) checkApart() error {
	if err := o.check(); err != nil {
		return err
	}
	for _, option := range []struct {
		name string
		used bool
	}{
		{"WithNetwork", o.network != "" && o.network != NetworkAuto},
		{"InNamespace", o.namespace != ""},
		{"WithXDPMode", o.xdp != "" && o.xdp != XDPAuto},
		{"WithSocketMode", o.socket != "" && o.socket != SocketAuto},
		{"WithSendMode", o.send != "" && o.send != SendAuto},
		{"WithFrames", o.frames != 0},
		{"WithTuning", o.tuning != Tuning{}},
		{"WithMembership", o.membership != "" && o.membership != MembershipAuto},
		{"WithStateDir", o.stateDir != ""},
	} {
		if option.used {
			return fmt.Errorf("%w: %s has no effect without an interface; omit it", verbs.ErrInvalid, option.name)
		}
	}
	return nil
}

// RunIn runs fn on a thread inside a network namespace, named by its file. Sockets that fn opens stay in the namespace;
// goroutines that it starts run outside. The thread ends with its goroutine and is not reused. If path is empty, RunIn
// uses the caller's own thread, which needs no privilege.
func RunIn(path string, fn func() error) error {
	namespace, err := host.Enter(path)
	if err != nil {
		return err
	}
	defer namespace.Close()
	return namespace.Do(fn)
}

// ListDevices lists the interfaces of the calling thread's network namespace that may be suitable for Open: those with
// an Ethernet address (ibv_get_device_list). Open can still fail on them.
func ListDevices() ([]verbs.Device, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, network.HostError(fmt.Errorf("list interfaces: %w", err))
	}
	var list []verbs.Device
	for _, i := range all {
		if len(i.HardwareAddr) == len(wire.MAC{}) && i.Flags&net.FlagLoopback == 0 {
			list = append(list, verbs.Device{Name: i.Name, Index: i.Index, GUID: port.GUID(wire.MAC(i.HardwareAddr))})
		}
	}
	return list, nil
}

// ListGIDs returns the entries that the GID table of a card on the interface would have if it were opened now. It opens
// no card. It uses only the option InNamespace, and needs no privilege without it.
func ListGIDs(name string, list ...Option) (entries []verbs.GIDEntry, err error) {
	o := newOptions(list)
	err = RunIn(o.namespace, func() error {
		found, err := nic.Look(name)
		if err == nil {
			entries = firstTable(name, found)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("GIDs of %s: %w", name, err)
	}
	return entries, nil
}

func firstTable(name string, status network.Port) []verbs.GIDEntry {
	table := port.NewGIDTable()
	table.Apply(table.Changes(status.Addresses))
	return table.Entries(name, status.Index)
}

// WatchDevices notifies a client of the interfaces that ListDevices lists, and of those that are added and removed
// (ib_register_client), until ctx is done; it returns the cause of ctx. Before it returns it calls Remove for the
// remaining ones, as ib_unregister_client does. An interface that is renamed, or gets another address, is removed and
// added.
func WatchDevices(ctx context.Context, client verbs.DeviceClient) error {
	links, err := host.WatchLinks()
	if err != nil {
		return network.HostError(fmt.Errorf("watch devices: %w", err))
	}
	defer links.Close()
	defer context.AfterFunc(ctx, links.Close)()
	err = provider.FollowDevices(ctx, func(context.Context) ([]verbs.Device, error) { return ListDevices() },
		func(context.Context) error { return links.Changed() }, client)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("watch devices: %w", err)
}
