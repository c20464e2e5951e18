package exec

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	osexec "os/exec"
	"os/signal"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/cmd/roced/internal/loopback"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// options is the command line.
type options struct {
	libraries string
	socket    string
	installed string // the socket of the service that the package installs
	network   string
	device    string // interface, where the network is not in memory
	hosts     int    // with names
	capture   string // file
	report    bool
	weather   loopback.Weather
	memory    loopback.Options // of the network in memory, as the command line says; after check
	preload   bool
	sysfs     bool
	inside    bool // the process has a mount namespace of its own, for --sysfs
	guard     bool // the process guards a folder, and does nothing else
	guarded   bool // the service's folder gets a guard
	log       *slog.Logger
	errOut    io.Writer
}

const help = `Runs a program that uses libibverbs or librdmacm over roced, as it is: no RDMA device, no
kernel module and no privilege is needed.

The program uses the service that --socket or ROCED_SOCKET names, else the one at
/run/roced/roced.sock, else that of "roced run --loopback" of the same user. If there is
none, the command runs one of its own for as long as the program runs: a private
in-memory network, on which each process is a host with the lowest free address, from
10.88.0.1, and with one that no other private network of this machine has (GID index 0).
Programs that are to reach each other there run below one "roced exec", for instance in
a shell; a program that waits alone is reported on standard error. Separate commands
share the network of "roced run --loopback". --network loopback asks for a service of its
own in any case, and so do --hosts, --report, --capture and the flags of a bad network
below. With --hosts there are devices whose addresses are known beforehand, as well, and
no other addresses; programs that open one share it.

--network udp has a service of its own over UDP sockets of an interface, with the host's
own addresses: no privilege is needed, and the peers are on the network. --network xdp is
the same over AF_XDP, and needs root or capabilities. RoCEv2's port, UDP 4791, must be free.
Without --device it is the interface of the default route, which a line on standard error names.

--report and --capture tell of that service: what was dropped, by the counters' names
(roced show stat), and what was sent again; and all packets, for tshark and Wireshark. On a
network in memory a packet is there twice: as it is sent, and as it arrives.

A network in memory can be a bad one: --loss, --duplicate, --reorder, --delay, --rate. Which
packets it happens to is decided by --seed, by the two hosts in the order in which they came
and by the packet's number between these: it is the same in each run, as far as the programs
start and send in the same order. What they send to acknowledge, or again, counts too, and
depends on times. --schedule FILE has hosts' links go down and come up, and addresses change,
and programs get their events. Its lines are a time from the start, a host (host1, or loop1
and so on for processes) and an event:

  500ms  loop1  down
  1.5s   loop1  up
  2s     host2  address 10.88.9.9,fd88::9:9

RoCE needs a GID index: most tools want -g 0. With ROCED_DEBUG=1 in the environment the
libraries say on stderr what fails, and why.

The libraries are those in clib/ beside roced ("make clib" builds them), in lib/roced
beside its folder, or where --libraries or ROCED_LIBRARIES says. The program finds them by
LD_LIBRARY_PATH; one that has a path of its own built in (RPATH) needs --preload. Programs
that are linked with musl find those in the folder musl below it.

Few programs look for devices in /sys/class/infiniband or /dev/infiniband. --sysfs shows
them the service's devices there, as they are for the process that roced exec starts: on a
network in memory its children have other addresses. The program gets a mount namespace of
its own, which works as root, and as an ordinary user where user namespaces are allowed.

Signals are the program's: the command passes them on, and stops and goes on as the program
does. If the command is killed (SIGKILL), so is the program, and nothing of either is left;
what the program has started itself goes on, and its device has failed.
Exit codes: the program's; 128 and the signal's number if a signal ended it; 2 if the
command line is wrong; 125 if the command itself failed; 126 if the program cannot be
run; 127 if it was not found.`

// Exit codes of the command's own, as those of env(1).
const (
	exitFailed  = 125
	exitCannot  = 126
	exitMissing = 127
)

// New is the command.
func New(log *slog.Logger) *cobra.Command {
	o := &options{installed: config.DefaultSocket, log: log}
	cmd := &cobra.Command{
		Use:     "exec [flags] -- PROGRAM [ARGUMENT...]",
		Short:   "Run an RDMA program in C over roced, unchanged",
		Long:    help,
		Example: "  roced exec -- ibv_devinfo\n  roced exec -- sh -c 'ibv_rc_pingpong -g 0 & sleep 1; ibv_rc_pingpong -g 0 localhost'",
		Args:    takesProgram,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.errOut = cmd.ErrOrStderr()
			if o.guard {
				return guardFolder(args[0])
			}
			if err := o.check(); err != nil {
				return cli.Usage(err)
			}
			err := o.run(args)
			if err == nil || errors.As(err, new(cli.Ended)) {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "roced:", err)
			return cli.Ended{Code: codeOf(err)}
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.SetInterspersed(false)
	daemon.AddSocket(f, &o.socket, "`path` of the service's socket")
	f.Var(&cli.Choice{List: []string{inMemory, "udp", "xdp"}, Value: &o.network}, "network", "a service of its own, also if there is another, over this `network`: loopback (in memory), udp (UDP sockets of an interface) or xdp (needs privileges)")
	f.VarP(&cli.Interface{One: &o.device}, "device", "d", "with --network udp or xdp: `interface` (default that of the default route)")
	f.IntVar(&o.hosts, "hosts", 0, "an in-memory network of its own with this `number` of devices with fixed addresses, host1 (10.88.0.1, fd88::1), host2 and so on")
	o.weather.Add(f, "an in-memory network of its own: ")
	f.BoolVar(&o.report, "report", false, "a service of its own: at the end, report on standard error what was dropped, what was sent again, and what was marked and slowed down by congestion")
	f.StringVar(&o.capture, "capture", "", "a service of its own: `file` for all packets, as pcapng, with what became of each")
	f.StringVar(&o.libraries, "libraries", "", "`folder` of libibverbs.so.1 and librdmacm.so.1")
	f.BoolVar(&o.preload, "preload", false, "load the libraries by LD_PRELOAD, before any path that is built into the program")
	f.BoolVar(&o.sysfs, "sysfs", false, "show the devices in the program's /sys/class/infiniband and /dev/infiniband too")
	f.BoolVar(&o.inside, inside, false, "")
	f.BoolVar(&o.guard, guarding, false, "")
	_ = errors.Join(f.MarkHidden(inside), f.MarkHidden(guarding))
	return cmd
}

func takesProgram(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usage(errors.New("which program? roced exec -- PROGRAM [ARGUMENT...]"))
	}
	return nil
}

func codeOf(err error) int {
	switch {
	case errors.Is(err, osexec.ErrNotFound), errors.Is(err, os.ErrNotExist) && errors.As(err, new(*programError)):
		return exitMissing
	case errors.As(err, new(*programError)):
		return exitCannot
	}
	return exitFailed
}

func (o *options) run(args []string) (err error) {
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) // what is ignored here would be ignored in the program too
	p := program{arguments: args, sysfs: o.sysfs, preload: o.preload}
	if p.path, err = osexec.LookPath(args[0]); err != nil {
		return &programError{fmt.Errorf("run %s: %w", args[0], errors.Unwrap(err))}
	}
	if p.libraries, err = findLibraries(o.libraries); err != nil {
		return err
	}
	if p.socket, err = o.findService(); err != nil {
		return err
	}
	switch {
	case p.socket == "":
		o.guarded = true
		return o.runWithOwnService(&p)
	case o.inside:
		if err := errors.Join(showDevices(p.socket), giveUpRights()); err != nil {
			return fmt.Errorf("--sysfs: %w", err)
		}
	case o.sysfs:
		return p.run()
	}
	return p.become()
}

// maxHosts is how many hosts --hosts makes at most.
const maxHosts = 1000

// check finds invalid flags before anything is opened. Flags of an in-memory network of its own choose that network.
func (o *options) check() error {
	own := o.ownFlag()
	if own != "" && o.network == "" && o.socket == "" {
		o.network = inMemory
	}
	way, known := networks[o.network]
	switch {
	case !known:
		return fmt.Errorf("--network %s: there are loopback, udp and xdp", o.network)
	case o.network != "" && o.socket != "":
		return errors.New("--network asks for a service of its own, --socket names another: leave one of them out")
	case o.device != "" && way == "":
		return errors.New("--device is for --network udp or xdp: add one of them")
	case o.socket != "" && own != "":
		return fmt.Errorf("--%s is for a service of the command's own, --socket names another: leave one of them out; roced show stat and roced dump report on that service", own)
	case o.hosts < 0 || o.hosts > maxHosts:
		return fmt.Errorf("--hosts %d: 0 to %d", o.hosts, maxHosts)
	case way != "" && (o.weather.Given() != "" || o.hosts > 0):
		return fmt.Errorf("--%s is for --network loopback, not %s: leave one of them out", own, o.network)
	case way == "":
		return o.describeMemory()
	}
	return nil
}

// ownFlag returns the first given flag that needs a service of the command's own; empty if none was given.
func (o *options) ownFlag() string {
	switch {
	case o.weather.Given() != "":
		return o.weather.Given()
	case o.hosts != 0:
		return "hosts"
	case o.report:
		return "report"
	case o.capture != "":
		return "capture"
	}
	return ""
}
