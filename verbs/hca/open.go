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

// Open makes a card on a network interface, by XDP if that can be had, else by UDP sockets, which need no
// privilege and run on any interface; NetworkUDP says what is lost then. WithNetwork chooses. On an interface
// one card is open at a time, whichever way: EBUSY, and EADDRINUSE if UDP port 4791 of one of its addresses
// is taken otherwise. What follows is about XDP.
//
// It needs CAP_NET_RAW (sockets), CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (XDP program, neighbours), and
// CAP_IPC_LOCK or enough RLIMIT_MEMLOCK (frames: 12 MiB, more with several queues, see WithFrames).
// InNamespace and Tuning need CAP_SYS_ADMIN too. One error names all that is missing.
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

// openHost opens the way to the network. If that is left to the card, and XDP cannot be had here, it is UDP sockets.
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
		return nil, fmt.Errorf("%w; and UDP sockets may get no packets, since there is an XDP program, %s: if it is a roced's, use that service; "+
			"if not, choose UDP sockets (WithNetwork, --network udp)", err, program)
	}
	other, udpErr := o.overUDP(name)
	if udpErr != nil {
		return nil, errors.Join(err, fmt.Errorf("over UDP sockets: %w", udpErr))
	}
	if o.workers > 1 {
		o.log.Warn("the device has one worker, as any over UDP sockets", "device", name, "asked", o.workers)
		o.workers = 1
	}
	o.log.Warn("the device uses UDP sockets, since XDP cannot be had: single messages take longer, and source MACs and VLANs are not seen",
		"device", name, "because", err)
	return other, nil
}

// openUDP opens UDP sockets because they were asked for.
func (o *options) openUDP(name string) (network.Host, error) {
	program, steering := nic.Attached(name, o.namespace)
	if steering {
		return nil, fmt.Errorf("%w: a device has the interface by XDP, %s, and UDP sockets would get none of its packets; close that first", unix.EBUSY, program)
	}
	if program != "" {
		o.log.Warn("there is an XDP program: if it is that of another roced, UDP sockets get no packets", "device", name, "xdp", program)
	}
	return o.overUDP(name)
}

// overUDP opens UDP sockets, after it has undone what killed devices left. What it is not permitted to undo is logged.
func (o *options) overUDP(name string) (network.Host, error) {
	nic.Undo(o.nicConfig())
	if left, _ := nic.Leftovers(name, o.nicConfig()); len(left) > 0 { // Open reports what is wrong with the interface
		var what, undo []string
		for _, l := range left {
			what, undo = append(what, l.What), append(undo, l.Undo)
		}
		o.log.Warn("a killed device left changes on the interface, and this process is not permitted to undo them", "device", name,
			"left", strings.Join(what, ", "), "undo", strings.Join(undo, "; "))
	}
	o.neighbours = nil
	return udpnet.Open(name, o.udpConfig())
}

// Leftovers lists the changes that killed processes left on an interface, such as the addresses of groups, each with the
// command that undoes it. The next device that is opened with CAP_NET_ADMIN in the interface's namespace undoes them
// too. Leftovers changes nothing. Without root it lists the addresses of groups only. InNamespace and WithStateDir are
// the options that it uses.
func Leftovers(name string, list ...Option) ([]nic.Leftover, error) {
	o := newOptions(list)
	left, err := nic.Leftovers(name, o.nicConfig())
	if err != nil {
		return nil, fmt.Errorf("leftovers on %s: %w", name, err)
	}
	return left, nil
}

// withoutXDP says that an error is about rights, or about what this kernel or this kind of interface lacks.
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

// New makes a card on a host: one of a network in memory (memnet.Network.AddHost), or of any other network. The
// card owns the host, and closes it, also if New fails. Options that are about an interface and its kernel
// are refused. Without WithLogger nothing is logged.
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

// OpenPair makes the cards of two hosts on a network in memory of their own.
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

// checkApart is check for a card that is on no interface: it refuses what is about one and its kernel too.
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
			return fmt.Errorf("%w: %s means nothing without an interface; leave it out", verbs.ErrInvalid, option.name)
		}
	}
	return nil
}

// RunIn runs fn on a thread inside a network namespace, named by its file. Sockets
// that fn opens stay in it, goroutines that it starts are outside. The thread is not
// used for anything else afterwards: it ends with its goroutine. With no file it is
// the caller's own thread, which takes no privilege.
func RunIn(path string, fn func() error) error {
	namespace, err := host.Enter(path)
	if err != nil {
		return err
	}
	defer namespace.Close()
	return namespace.Do(fn)
}

// ListDevices lists the interfaces of the calling thread's network namespace that Open may be given: those with an
// Ethernet address (ibv_get_device_list). Whether one can be opened shows only when it is.
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

// ListGIDs gives the entries that the GID table of a card on the interface would have if it were
// opened now. It opens no card, and needs no privilege except for InNamespace, which is the only
// option that it uses.
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

// WatchDevices tells a client of the interfaces that ListDevices lists, and of those that come and go
// (ib_register_client), until ctx is done: its cause is the error. Before it returns it calls Remove for those that
// are there, as ib_unregister_client does. An interface that is renamed, or gets another address, goes and comes.
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
