// SPDX-License-Identifier: Apache-2.0

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

// Option changes how a card is opened. New rejects options that concern an interface or its kernel: WithNetwork,
// InNamespace, WithXDPMode, WithSocketMode, WithSendMode, WithFrames, WithTuning, WithMembership and WithStateDir.
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

	neighbours *quota.Neighbours // held by cards; nil if the card is on no interface, or the kernel resolves
}

// kernelNeighbours counts the neighbours of all cards of the process.
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

// nicConfig returns the options that concern an interface and its kernel.
func (o *options) nicConfig() nic.Config {
	return nic.Config{
		Namespace: o.namespace, MTU: o.mtu, XDP: string(o.xdp), Socket: string(o.socket), Send: string(o.send), Membership: string(o.membership),
		Workers: o.workers, Frames: o.frames, Tuning: nic.Tuning(o.tuning), StateDir: o.stateDir, Log: o.log,
	}
}

// check rejects options that no card supports.
func (o *options) check() error {
	if o.mtu > wire.MTU4096 {
		return fmt.Errorf("%w: RDMA MTU %d is invalid; use MTU256 (1) to MTU4096 (5)", verbs.ErrInvalid, o.mtu)
	}
	if o.workers < 0 || o.workers > MaxWorkers {
		return fmt.Errorf("%w: %d workers; a card can have 1 to %d", verbs.ErrInvalid, o.workers, MaxWorkers)
	}
	c := o.nicConfig()
	return errors.Join(o.checkNetwork(), o.checkCongestion(), c.Check())
}

// checkNetwork rejects options that exclude each other.
func (o *options) checkNetwork() error {
	switch o.network {
	case "", NetworkAuto, NetworkXDP:
		return nil
	case NetworkUDP:
		if o.workers > 1 {
			return fmt.Errorf("%w: %d workers: a card over UDP sockets has one; omit WithWorkers", verbs.ErrInvalid, o.workers)
		}
		if o.aboutXDP() {
			return fmt.Errorf("%w: WithXDPMode, WithSocketMode, WithSendMode and WithTuning have no effect over UDP sockets; omit them", verbs.ErrInvalid)
		}
		return nil
	}
	return fmt.Errorf("%w: network %q; it must be one of auto, xdp, udp", verbs.ErrInvalid, o.network)
}

// aboutXDP reports whether an option requests a feature of XDP.
func (o *options) aboutXDP() bool {
	return o.xdp != "" && o.xdp != XDPAuto || o.socket != "" && o.socket != SocketAuto ||
		o.send != "" && o.send != SendAuto || o.tuning != Tuning{}
}

// defaultSpin is short, since on a machine with few processors a spinning worker delays the programs that it serves.
const defaultSpin = 20 * time.Microsecond

// WithNetwork chooses how the card accesses the network. The default is NetworkAuto.
func WithNetwork(network Network) Option { return func(o *options) { o.network = network } }

// InNamespace opens the interface in a network namespace, named by its file: /run/netns/NAME or /proc/PID/ns/net.
func InNamespace(path string) Option { return func(o *options) { o.namespace = path } }

// WithMTU limits the RDMA MTU. Open fails if the MTU does not fit the interface.
func WithMTU(mtu verbs.MTU) Option { return func(o *options) { o.mtu = mtu } }

// WithXDPMode requires native or generic XDP. The default is native, with generic as the fallback.
func WithXDPMode(mode XDPMode) Option { return func(o *options) { o.xdp = mode } }

// WithSocketMode requires copy or zero-copy mode. The default is zero-copy, with copy as the fallback.
func WithSocketMode(mode SocketMode) Option { return func(o *options) { o.socket = mode } }

// WithSendMode selects how bursts leave the interface. The default is SendAuto.
func WithSendMode(mode SendMode) Option { return func(o *options) { o.send = mode } }

// MaxWorkers is the maximum number of workers of a card.
const MaxWorkers = datapath.MaxWorkers

// WithWorkers sets the number of workers of a card, 1 to MaxWorkers (default 1). Each worker does all the work of some
// of the card's sessions, and can use a processor of its own. So several workers help programs that share the card, not
// a single program. On an interface each worker needs a queue to receive and to send (ethtool -l): with fewer queues
// there are fewer workers, and a log entry reports it; DeviceAttr.Workers is the actual number. With several workers,
// frames are sent singly, not in trains. Over UDP sockets there is one worker. Only sessions of the same worker can
// share XRC domains.
func WithWorkers(workers int) Option { return func(o *options) { o.workers = workers } }

// WithSpin sets how long the worker polls for work before it sleeps (default 20 µs).
func WithSpin(spin time.Duration) Option { return func(o *options) { o.spin = spin } }

// WithFrames sets the size of each socket's rings, in frames, a power of two. Each receive queue of the interface has a
// socket with memory for twice as many received frames, 2 KiB each (4 KiB from an RDMA MTU of 2048 on); one socket of
// each worker has as many again to send. The default is 2048, or less if that would need more than 128 MiB: 512 with 64
// queues, but at least 64. Queues added later do not change the rings of the others.
func WithFrames(frames uint32) Option { return func(o *options) { o.frames = frames } }

// WithoutInline prevents programs from running the card while they poll or post. The worker does all work.
func WithoutInline() Option { return func(o *options) { o.inline = false } }

// WithoutWorker opens a card without a worker: it runs only while a program polls. Otherwise nothing is sent or
// received, and CQ.Wait does not return.
func WithoutWorker() Option { return func(o *options) { o.worker = false } }

// WithTuning changes kernel settings until the card is closed.
func WithTuning(t Tuning) Option { return func(o *options) { o.tuning = t } }

// WithLogger sets the logger for the card's messages, such as fallbacks and changes on the host. By default warnings
// and errors go to slog.Default() and other messages are discarded; New discards all messages.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithMembership selects how the host joins IPv4 groups. The default is MembershipAuto.
func WithMembership(via MembershipMethod) Option { return func(o *options) { o.membership = via } }

// WithStateDir sets the directory of the journals from which the next card undoes the changes that a killed process
// left. The default is /run/roced.
func WithStateDir(dir string) Option { return func(o *options) { o.stateDir = dir } }

// defaultLog returns the logger of a device without WithLogger: it passes warnings and errors to the program's default
// logger and discards other messages.
func defaultLog() *slog.Logger { return slog.New(warnings{slog.Default().Handler()}) }

// warnings discards records below slog.LevelWarn.
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

// Network selects how a card accesses the network. The zero value is NetworkAuto.
type Network string

// The networks. They carry the same packets, so cards of both kinds interoperate.
const (
	// NetworkAuto is NetworkXDP if all its requirements are met, else NetworkUDP, with a warning that names the missing
	// requirement. Options that concern XDP (WithXDPMode, WithSocketMode, WithSendMode, WithTuning) exclude NetworkUDP.
	NetworkAuto Network = "auto"
	// NetworkXDP uses AF_XDP sockets, to which an XDP program steers packets. It has the shortest round trips,
	// zero-copy and exact headers. It needs privileges, see Open.
	NetworkXDP Network = "xdp"
	// NetworkUDP uses UDP sockets on port 4791. It needs no privileges, and works on any interface, including tun,
	// WireGuard and ipvlan. Consecutive packets cross the kernel as one, so long messages are several times as fast
	// between namespaces of a host. Cards of one host reach each other.
	//
	// Single messages take longer. Completions have no source MAC and no VLAN, which the kernel does not report. The
	// IPv4 identification is not reported either, so only 15 of the 32 bits of the ICRC are checked, in addition to the
	// UDP checksum. Neighbours are not resolved in advance: an address handle is created even if the neighbour does not
	// respond. The kernel joins groups (IGMP, MLD) for sockets, and chooses the IPv6 flow labels.
	NetworkUDP Network = "udp"
)

// XDPMode is the mode in which the steering program runs. The zero value is XDPAuto.
type XDPMode string

// The modes of XDP.
const (
	XDPAuto    XDPMode = "auto"    // native, or generic if the driver has no native XDP
	XDPNative  XDPMode = "native"  // in the driver, before a socket buffer is made
	XDPGeneric XDPMode = "generic" // in the network stack: on any interface, but slower
)

// SocketMode is the mode of the AF_XDP sockets. The zero value is SocketAuto.
type SocketMode string

// The modes of AF_XDP.
const (
	SocketAuto     SocketMode = "auto"      // zero-copy if the driver supports it, else copy
	SocketCopy     SocketMode = "copy"      // the kernel copies each frame
	SocketZeroCopy SocketMode = "zero-copy" // the NIC reads and writes the frames, or Open fails
)

// SendMode selects how bursts of packets leave the interface. The zero value is SendAuto. In every mode, single packets
// and short bursts leave through the AF_XDP socket, one frame per packet, and packets of one queue pair never overtake
// each other.
//
// A train is eight or more consecutive packets of one flow and length, which the kernel receives as one long frame and
// segments into packets (UDP segmentation offload, Linux 6.2). It is faster, since the frame passes the network stack
// once. The packets are the same except for the UDP checksum, which packets of trains have, as RoCEv2 allows; in frames
// of AF_XDP sockets it is 0. Unlike those frames, trains pass the interface's queueing discipline, tc and netfilter's
// egress hook, and are visible in tcpdump. Once a millisecond the last packet of a train is sent separately, to detect
// a lost carrier: packets that a veth without carrier drops until then are counted only in the interface's tx_dropped.
type SendMode string

// The send modes.
const (
	// SendAuto uses trains only where they are faster and do not change the packets on the wire: on a veth pair of one
	// queue without a queueing discipline, if the other end has a native XDP program (such as roced's), which makes the
	// kernel segment trains before they leave. It requires Linux 6.2, by the kernel's release.
	SendAuto SendMode = "auto"
	// SendAFXDP sends each packet separately. It is for peers that require a UDP checksum of 0.
	SendAFXDP SendMode = "af_xdp"
	// SendTrains uses trains on any interface that sends through one queue: with several, packets could overtake each
	// other (ethtool -L shows and changes the number). If the kernel refuses the first train, no more are sent.
	//
	// An interface that offers UDP segmentation (tx-udp-segmentation in ethtool -k) passes a train on unchanged. A NIC
	// segments it, and so does the kernel for sockets, for Soft-RoCE, behind a bridge or a router for a NIC or a
	// receiver with native XDP, and for a TAP whose reader has not announced support (TUN_F_USO4, TUN_F_USO6; virtual
	// machines' emulators since QEMU 8.2). But a veth without XDP passes it on, and then a receiver with generic XDP (a
	// bond, a macvlan), or one that reads raw frames, gets one long frame and loses the packets in it.
	//
	// A queueing discipline that drops a train counts one drop (tc -s qdisc); the card counts its packets
	// (drop_interface). A queueing discipline that splits trains (tbf with a burst shorter than a train) or drops later
	// (fq_codel) does not report the dropped parts: only its own counter has them.
	SendTrains SendMode = "trains"
)

// MembershipMethod selects how the host joins IPv4 groups. IPv6 groups are always joined with sockets. The zero value
// is MembershipAuto.
type MembershipMethod string

// The membership methods.
const (
	// MembershipAuto is MembershipNetlink up to the kernel's limit, then MembershipSocket.
	MembershipAuto MembershipMethod = "auto"
	// MembershipNetlink adds the group's address to the interface, with autojoin (ip-address(8)). All such addresses of
	// a namespace share net.ipv4.igmp_max_memberships (kernel default 20).
	MembershipNetlink MembershipMethod = "netlink"
	// MembershipSocket opens a UDP socket for each group, which uses a file descriptor.
	MembershipSocket MembershipMethod = "socket"
)

// Tuning has kernel settings that affect performance. The best values depend on the workload, so measure. A zero value
// leaves a setting unchanged.
type Tuning struct {
	// DeferHardIRQs is the number of empty NAPI polls before interrupts are enabled again (napi_defer_hard_irqs).
	DeferHardIRQs int
	// GROFlushTimeout is the time between those polls (gro_flush_timeout).
	GROFlushTimeout time.Duration
	// BusyPoll is the maximum time that one call polls the driver (SO_PREFER_BUSY_POLL), and BusyPollBudget the maximum
	// number of frames that it receives.
	BusyPoll       time.Duration
	BusyPollBudget int
}

// Apply changes the settings of an interface in the calling thread's namespace; restore resets them to the old values.
func (t Tuning) Apply(name string) (restore func() error, err error) {
	return nic.Tuning(t).Apply(name)
}
