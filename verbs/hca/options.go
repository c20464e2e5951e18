package hca

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// Option changes how a device is opened.
type Option func(*options)

type options struct {
	namespace string
	mtu       verbs.MTU
	xdp       XDPMode
	socket    SocketMode
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

// check refuses what no interface could give, and finds out what the names of modes mean.
func (o *options) check() (modes, error) {
	if o.mtu > wire.MTU4096 {
		return modes{}, fmt.Errorf("%w: RDMA MTU %d is none: MTU256 (1) to MTU4096 (5)", verbs.ErrInvalid, o.mtu)
	}
	return o.modes()
}

// defaultSpin is short: on a machine with few processors a worker that spins keeps
// the programs that it serves from running.
const defaultSpin = 20 * time.Microsecond

// InNamespace opens the interface in a network namespace, named by its file:
// /run/netns/NAME or /proc/PID/ns/net.
func InNamespace(path string) Option { return func(o *options) { o.namespace = path } }

// WithMTU asks for an RDMA MTU: a smaller one than fits the interface, or an
// error if it does not fit.
func WithMTU(mtu verbs.MTU) Option { return func(o *options) { o.mtu = mtu } }

// WithXDPMode asks for native or generic XDP; otherwise generic is the fallback.
func WithXDPMode(mode XDPMode) Option { return func(o *options) { o.xdp = mode } }

// WithSocketMode asks for copy or zero-copy; otherwise copy is the fallback.
func WithSocketMode(mode SocketMode) Option { return func(o *options) { o.socket = mode } }

// WithSpin sets how long the worker looks for work before it sleeps.
func WithSpin(spin time.Duration) Option { return func(o *options) { o.spin = spin } }

// WithFrames sets the size of the rings of each socket, a power of two: there is a socket for
// each receive queue of the interface, and memory for twice as many frames, 2 KiB each (4 KiB
// from an RDMA MTU of 2048 on), and for as many to send. Otherwise it is 2048, and less
// where that would come to more than 128 MiB: 512 with 64 queues, but at least 64.
func WithFrames(frames uint32) Option { return func(o *options) { o.frames = frames } }

// WithoutInline keeps programs from running the card while they poll or post: the
// worker does all work.
func WithoutInline() Option { return func(o *options) { o.inline = false } }

// WithoutWorker has no thread: the card runs only while a program polls.
// Nothing is sent and nothing received in between, and CQ.Wait does not return.
func WithoutWorker() Option { return func(o *options) { o.worker = false } }

// WithTuning sets knobs of the kernel, which are put back when the device is closed.
func WithTuning(t Tuning) Option { return func(o *options) { o.tuning = t } }

// WithLogger takes the device's messages: fallbacks, and what the host changes
// under it. Otherwise warnings go to slog.Default(), and the rest nowhere.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithMembership says how the host joins IPv4 groups; otherwise by netlink, and by
// sockets beyond the kernel's limit.
func WithMembership(via MembershipMethod) Option { return func(o *options) { o.membership = via } }

// WithStateDir is where what must be undone after a kill is recorded: /run/roced
// otherwise.
func WithStateDir(dir string) Option { return func(o *options) { o.stateDir = dir } }
