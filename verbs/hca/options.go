//go:build linux

package hca

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/nic"
	"github.com/roced/roced/verbs/hca/quota"
)

// Option changes how a card is opened. Options that concern an interface or its kernel have no
// meaning elsewhere, and New refuses them: WithNetwork, InNamespace, WithXDPMode, WithSocketMode,
// WithSendMode, WithFrames, WithTuning, WithMembership and WithStateDir.
type Option func(*options)

type options struct {
	network   Network
	namespace string
	mtu       verbs.MTU
	xdp       XDPMode
	socket    SocketMode
	send      SendMode
	worker    bool
	workers   int
	spin      time.Duration
	inline    bool
	frames    uint32
	tuning    Tuning

	congestion Congestion
	recovery   Recovery
	dcqcn      DCQCN

	membership MembershipMethod
	stateDir   string
	log        *slog.Logger

	neighbours *quota.Neighbours // the kernel's that cards hold; nil if the card is on no interface, or the kernel resolves
}

// kernelNeighbours are those of all cards of the process.
var kernelNeighbours = quota.NewNeighbours(func(v6 bool) uint64 { return host.MaxNeighbours(v6) / 2 })

func newOptions(list []Option) options {
	o := options{
		worker: true, inline: true, spin: defaultSpin,
		dcqcn: DefaultDCQCN(),
		log:   defaultLog(),

		neighbours: kernelNeighbours,
	}
	for _, option := range list {
		option(&o)
	}
	return o
}

// nicConfig returns the options that are about an interface and its kernel.
func (o *options) nicConfig() nic.Config {
	return nic.Config{
		Namespace: o.namespace, MTU: o.mtu, XDP: string(o.xdp), Socket: string(o.socket), Send: string(o.send), Membership: string(o.membership),
		Workers: o.workers, Frames: o.frames, Tuning: nic.Tuning(o.tuning), StateDir: o.stateDir, Log: o.log,
	}
}

// check refuses options that no card supports.
func (o *options) check() error {
	if o.mtu > wire.MTU4096 {
		return fmt.Errorf("%w: RDMA MTU %d does not exist; MTU256 (1) to MTU4096 (5) do", verbs.ErrInvalid, o.mtu)
	}
	if o.workers < 0 || o.workers > MaxWorkers {
		return fmt.Errorf("%w: %d workers; a card has 1 to %d", verbs.ErrInvalid, o.workers, MaxWorkers)
	}
	c := o.nicConfig()
	return errors.Join(o.checkNetwork(), o.checkCongestion(), c.Check())
}

// checkNetwork refuses options that exclude each other.
func (o *options) checkNetwork() error {
	switch o.network {
	case "", NetworkAuto, NetworkXDP:
		return nil
	case NetworkUDP:
		if o.workers > 1 {
			return fmt.Errorf("%w: %d workers: a card over UDP sockets has one; leave WithWorkers out", verbs.ErrInvalid, o.workers)
		}
		if o.aboutXDP() {
			return fmt.Errorf("%w: WithXDPMode, WithSocketMode, WithSendMode and WithTuning mean nothing over UDP sockets; leave them out", verbs.ErrInvalid)
		}
		return nil
	}
	return fmt.Errorf("%w: network %q; it must be one of auto, xdp, udp", verbs.ErrInvalid, o.network)
}

// aboutXDP says that an option asks for what only XDP has.
func (o *options) aboutXDP() bool {
	return o.xdp != "" && o.xdp != XDPAuto || o.socket != "" && o.socket != SocketAuto ||
		o.send != "" && o.send != SendAuto || o.tuning != Tuning{}
}

// defaultSpin is short, since on a machine with few processors a spinning worker keeps the programs
// that it serves from running.
const defaultSpin = 20 * time.Microsecond

// WithNetwork chooses the way between card and network. The default is NetworkAuto.
func WithNetwork(network Network) Option { return func(o *options) { o.network = network } }

// InNamespace opens the interface in a network namespace, named by its file:
// /run/netns/NAME or /proc/PID/ns/net.
func InNamespace(path string) Option { return func(o *options) { o.namespace = path } }

// WithMTU limits the RDMA MTU; Open fails if it does not fit the interface.
func WithMTU(mtu verbs.MTU) Option { return func(o *options) { o.mtu = mtu } }

// WithXDPMode requires native or generic XDP. The default is native, with generic as the fallback.
func WithXDPMode(mode XDPMode) Option { return func(o *options) { o.xdp = mode } }

// WithSocketMode requires copy or zero-copy mode. The default is zero-copy, with copy as the
// fallback.
func WithSocketMode(mode SocketMode) Option { return func(o *options) { o.socket = mode } }

// WithSendMode says how bursts leave the interface. The default is SendAuto.
func WithSendMode(mode SendMode) Option { return func(o *options) { o.send = mode } }

// MaxWorkers is how many workers a card has at most.
const MaxWorkers = datapath.MaxWorkers

// WithWorkers sets how many workers a card has: 1 by default, MaxWorkers at most. Each serves some of the card's sessions, all
// that there is of them, and can use a processor of its own. So programs that share the card gain, and one program does not.
// On an interface each needs a queue to receive and to send (ethtool -l): where it has fewer, there are fewer workers, and a
// log entry says so; DeviceAttr.Workers is how many there are. Frames leave each by itself then, not in trains. Over UDP
// sockets there is one worker. XRC domains are shared by sessions of one worker only.
func WithWorkers(workers int) Option { return func(o *options) { o.workers = workers } }

// WithSpin sets how long the worker looks for work before it sleeps; 20 µs by default.
func WithSpin(spin time.Duration) Option { return func(o *options) { o.spin = spin } }

// WithFrames sets the size of each socket's rings, in frames, a power of two. Each receive queue of
// the interface has a socket with memory for twice as many frames to receive, 2 KiB each (4 KiB from
// an RDMA MTU of 2048 on); one socket of each worker has as many again to send. The default is 2048, or less if that
// would need more than 128 MiB: 512 with 64 queues, but at least 64. Queues that the interface gets
// later do not change the rings of the others.
func WithFrames(frames uint32) Option { return func(o *options) { o.frames = frames } }

// WithoutInline keeps programs from running the card while they poll or post. The worker does all
// work.
func WithoutInline() Option { return func(o *options) { o.inline = false } }

// WithoutWorker opens a card without a worker: it runs only while a program polls. In between
// nothing is sent or received, and CQ.Wait does not return.
func WithoutWorker() Option { return func(o *options) { o.worker = false } }

// WithTuning changes settings of the kernel until the card is closed.
func WithTuning(t Tuning) Option { return func(o *options) { o.tuning = t } }

// WithLogger sets the logger for the card's messages: fallbacks, and changes on the host. By default
// warnings and errors go to slog.Default(), and other messages nowhere; with New all go nowhere.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithMembership says how the host joins IPv4 groups. The default is MembershipAuto.
func WithMembership(via MembershipMethod) Option { return func(o *options) { o.membership = via } }

// WithStateDir sets the directory of the journals that let the next card undo what a killed process
// left. The default is /run/roced.
func WithStateDir(dir string) Option { return func(o *options) { o.stateDir = dir } }

// defaultLog is where messages of a device go unless WithLogger was given: warnings and errors to the
// program's default logger, the rest nowhere.
func defaultLog() *slog.Logger { return slog.New(warnings{slog.Default().Handler()}) }

// warnings lets nothing through below slog.LevelWarn.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

// Network is the name of the way between a card and the network. The zero value is NetworkAuto.
type Network string

// The ways. They carry the same packets, and cards of both talk to each other.
const (
	// NetworkAuto is NetworkXDP where everything that it needs is there, else NetworkUDP, with a warning that says what
	// is missing. Options that are about XDP (WithXDPMode, WithSocketMode, WithSendMode, WithTuning) rule NetworkUDP out.
	NetworkAuto Network = "auto"
	// NetworkXDP is AF_XDP sockets that an XDP program steers packets to. It has the quickest round trips, zero-copy and
	// exact headers. It needs privileges, see Open.
	NetworkXDP Network = "xdp"
	// NetworkUDP is UDP sockets of port 4791. It needs no privilege, and runs on any interface: also tun, WireGuard and
	// ipvlan. Packets in a row cross the kernel as one, so long messages are several times as quick between namespaces of
	// a host. Cards of one host reach each other.
	//
	// Single messages take longer. Completions have no source MAC and no VLAN: the kernel does not tell them. IPv4's
	// identification is not seen either, so that of the 32 bits that the ICRC checks, 15 remain, beside the UDP checksum. It
	// is not known whether a neighbour answers: an address handle is made also if it does not. The kernel joins groups
	// (IGMP, MLD) by sockets. Flow labels of IPv6 are the kernel's.
	NetworkUDP Network = "udp"
)

// XDPMode is the name of the mode that the steering program runs in. The zero value is XDPAuto.
type XDPMode string

// The modes of XDP.
const (
	XDPAuto    XDPMode = "auto"    // native, or generic if the driver has no native XDP
	XDPNative  XDPMode = "native"  // in the driver, before a socket buffer is made
	XDPGeneric XDPMode = "generic" // in the network stack: on any interface, but slower
)

// SocketMode is the name of the way that AF_XDP sockets move frames. The zero value is SocketAuto.
type SocketMode string

// The modes of AF_XDP.
const (
	SocketAuto     SocketMode = "auto"      // zero-copy if the driver supports it, else copy
	SocketCopy     SocketMode = "copy"      // the kernel copies each frame
	SocketZeroCopy SocketMode = "zero-copy" // the NIC reads and writes the frames, or Open fails
)

// SendMode is the name of the way that bursts of packets leave the interface. The zero value is
// SendAuto. Whatever the mode, single packets and short bursts leave through the AF_XDP socket, a frame
// a packet, and packets of one queue pair never overtake each other.
//
// A train is eight or more packets of one flow and length in a row, which the kernel gets as one long
// frame and makes packets of (UDP segmentation offload, Linux 6.2). It is quicker, since the frame
// passes the network stack once. The packets are the same, except for the UDP checksum: a train's have one,
// which RoCEv2 allows; frames of AF_XDP sockets have 0. Unlike those, trains pass the interface's
// queueing discipline, tc and netfilter's egress hook, and tcpdump shows them. Once a millisecond the last
// packet of a train leaves by itself, to see whether there is still a carrier: what a veth without one drops
// until then is in the interface's tx_dropped alone.
type SendMode string

// The modes.
const (
	// SendAuto uses trains where they were measured to help and nobody else can notice: on a veth
	// pair of one queue, without a queueing discipline, whose other end has a native XDP program, which
	// has the kernel make packets of trains before they leave. roced at the other end is one. It goes by
	// the kernel's release: none before Linux 6.2.
	SendAuto SendMode = "auto"
	// SendAFXDP sends each packet by itself. It is for a peer that insists on a UDP checksum of 0.
	SendAFXDP SendMode = "af_xdp"
	// SendTrains uses trains on any interface that sends through one queue: with several, packets could
	// overtake each other (ethtool -L says how many, and changes it). A kernel that refuses the first
	// train gets none after it.
	//
	// An interface that offers UDP segmentation (tx-udp-segmentation in ethtool -k) passes a train on as it
	// is. A NIC makes packets of it, and so does the kernel for sockets, for Soft-RoCE, behind a bridge or
	// a router for a NIC or a receiver with native XDP, and for a TAP whose reader has not said that it can
	// (TUN_F_USO4, TUN_F_USO6; virtual machines' emulators since QEMU 8.2). But a veth without XDP hands it
	// on, and then a receiver with generic XDP (a bond, a macvlan), or one that reads raw frames, gets one
	// long frame and loses the packets in it.
	//
	// A queueing discipline that drops a train counts one drop (tc -s qdisc); the card counts its packets
	// (drop_interface). One that splits trains (tbf, with a burst shorter than they are), or drops later
	// (fq_codel), tells nobody about the parts that it drops: only its own counter has them.
	SendTrains SendMode = "trains"
)

// MembershipMethod is the name of the way that the host joins IPv4 groups. IPv6 groups are always
// joined with sockets. The zero value is MembershipAuto.
type MembershipMethod string

// The methods.
const (
	// MembershipAuto is MembershipNetlink up to the kernel's limit, then MembershipSocket.
	MembershipAuto MembershipMethod = "auto"
	// MembershipNetlink gives the interface the group's address, with autojoin (ip-address(8)).
	// All such addresses of a namespace share net.ipv4.igmp_max_memberships, 20 as shipped.
	MembershipNetlink MembershipMethod = "netlink"
	// MembershipSocket opens a UDP socket for each group. It costs a file descriptor.
	MembershipSocket MembershipMethod = "socket"
)

// Tuning are settings of the kernel that affect speed. Which values help depends on the case, so
// measure. A zero value leaves a setting as it is.
type Tuning struct {
	// DeferHardIRQs is how often NAPI is polled without work before interrupts
	// are turned on again (napi_defer_hard_irqs).
	DeferHardIRQs int
	// GROFlushTimeout is how long NAPI waits between those polls (gro_flush_timeout).
	GROFlushTimeout time.Duration
	// BusyPoll is how long one call may poll the driver (SO_PREFER_BUSY_POLL), and
	// BusyPollBudget how many frames it takes.
	BusyPoll       time.Duration
	BusyPollBudget int
}

// Apply changes the settings of an interface in the calling thread's namespace; restore sets the old
// values again.
func (t Tuning) Apply(name string) (restore func() error, err error) {
	return nic.Tuning(t).Apply(name)
}
