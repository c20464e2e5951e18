//go:build linux

package hca

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
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
	spin      time.Duration
	inline    bool
	frames    uint32
	tuning    Tuning

	membership MembershipMethod
	stateDir   string
	log        *slog.Logger
}

func newOptions(list []Option) options {
	o := options{
		worker: true, inline: true, spin: defaultSpin,
		log: defaultLog(),
	}
	for _, option := range list {
		option(&o)
	}
	return o
}

// check refuses options that no card supports.
func (o *options) check() error {
	if o.mtu > wire.MTU4096 {
		return fmt.Errorf("%w: RDMA MTU %d does not exist; MTU256 (1) to MTU4096 (5) do", verbs.ErrInvalid, o.mtu)
	}
	c := o.nic()
	return errors.Join(o.checkNetwork(), c.Check())
}

// checkNetwork refuses options that exclude each other.
func (o *options) checkNetwork() error {
	switch o.network {
	case "", NetworkAuto, NetworkXDP:
		return nil
	case NetworkUDP:
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

// WithSpin sets how long the worker looks for work before it sleeps; 20 µs by default.
func WithSpin(spin time.Duration) Option { return func(o *options) { o.spin = spin } }

// WithFrames sets the size of each socket's rings, in frames, a power of two. Each receive queue of
// the interface has a socket with memory for twice as many frames to receive, 2 KiB each (4 KiB from
// an RDMA MTU of 2048 on); one socket has as many again to send. The default is 2048, or less if that
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
