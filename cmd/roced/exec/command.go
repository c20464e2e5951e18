// SPDX-License-Identifier: Apache-2.0

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

// options holds the command line.
type options struct {
	libraries  string
	socket     string
	installed  string // socket of the installed service
	network    string
	device     string // interface, unless the network is in memory
	hosts      int    // number of named hosts
	capture    string // file
	report     bool
	impairment loopback.ImpairmentFlags
	memory     loopback.Options // options of the in-memory network; set by check
	preload    bool
	sysfs      bool
	inside     bool // running in the new mount namespace of --sysfs
	guard      bool // running as the guard of a directory
	guarded    bool // start a guard for the service's directory
	log        *slog.Logger
	errOut     io.Writer
}

const help = `Runs an unmodified program that uses libibverbs or librdmacm over roced. No RDMA device,
kernel module or privileges are needed.

The program uses the service of --socket or ROCED_SOCKET, otherwise the service at
/run/roced/roced.sock, otherwise that of "roced run --loopback" of the same user. If none
exists, the command starts a private service, which ends with the program: an in-memory
network on which localhost and the other addresses of this machine name the program that
listens on the port. Each process is also a host with the lowest free address, from
10.88.0.1, and with a second address that is unique on this machine (GID index 0).
Programs on a private network reach each other only below the same "roced exec", for
example in a shell; if a program waits there alone, a line on standard error reports this.
To share a network between commands, start "roced run --loopback" first. --network loopback
always starts a private service, as do --hosts, --report, --capture and the impairment flags
below.
--hosts adds devices with fixed addresses and no others; programs that open the same
device share it.

--network udp starts a private service over UDP sockets of an interface, with the host's
addresses. It needs no privileges and reaches peers on the network. --network xdp uses
AF_XDP instead, which needs root or capabilities. Both need UDP port 4791 to be free. The
default interface is that of the default route; a line on standard error names it.

--report prints drops (by counter name, see roced show stat) and retransmissions of the
private service. --capture records all its packets for tshark and Wireshark. On an
in-memory network each packet is recorded twice: as sent and as received.

--loss, --duplicate, --reorder, --delay and --rate impair an in-memory network. The
affected packets depend on --seed, on the start order of the two hosts and on the packet's
number between them. Runs are identical if the programs start and send in the same order;
acknowledgements and retransmissions count as packets and depend on timing. --schedule
FILE takes links down and up and changes addresses at given times, and the programs
receive the events. Each line has a time since the start, a host (host1, or loop1, loop2,
… for processes) and an event:

  500ms  loop1  down
  1.5s   loop1  up
  2s     host2  address 10.88.9.9,fd88::9:9

RoCE needs a GID index: most tools need -g 0. With ROCED_DEBUG=1 in the environment the
libraries report errors and their causes on standard error.

The libraries are searched in --libraries, ROCED_LIBRARIES, the directory clib beside
roced (built by "make clib") and lib/roced beside roced's directory. The program finds
them through LD_LIBRARY_PATH; a program with a built-in path (RPATH) needs --preload.
Programs linked with musl use the libraries in the subdirectory musl.

--sysfs shows the devices in /sys/class/infiniband and /dev/infiniband, which few programs
read. The devices are those of the process that roced exec starts; its children have other
addresses on an in-memory network. --sysfs needs a mount namespace, so root or unprivileged
user namespaces.

Signals are forwarded to the program, and the command stops and continues with it. If the
command is killed (SIGKILL), the program is killed too and nothing remains. Processes that
the program started continue to run; their device has failed.
Exit codes: that of the program; 128 plus the signal number if a signal ended it; 2 for an
invalid command line; 125 if the command itself failed; 126 if the program cannot be run;
127 if the program was not found.`

// Exit codes of the command itself, as in env(1).
const (
	exitFailed  = 125
	exitCannot  = 126
	exitMissing = 127
)

// New returns the command.
func New(log *slog.Logger) *cobra.Command {
	o := &options{installed: config.DefaultSocket, log: log}
	cmd := &cobra.Command{
		Use:     "exec [flags] -- PROGRAM [ARGUMENT...]",
		Short:   "Run an unmodified libibverbs or librdmacm program over roced",
		Long:    help,
		Example: "  roced exec -- ibv_devinfo\n  roced exec -- sh -c 'ibv_rc_pingpong -g 0 & sleep 1; ibv_rc_pingpong -g 0 localhost'",
		Args:    requireProgram,
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
	daemon.AddSocket(f, &o.socket, "`path` of the service socket")
	f.Var(&cli.Choice{List: []string{inMemory, "udp", "xdp"}, Value: &o.network}, "network", "start a private service on this `network`: loopback (in memory), udp (UDP sockets of an interface) or xdp (needs privileges)")
	f.VarP(&cli.Interface{One: &o.device}, "device", "d", "`interface` of --network udp or xdp (default: that of the default route)")
	f.IntVar(&o.hosts, "hosts", 0, "`number` of devices with fixed addresses on a private in-memory network: host1 (10.88.0.1, fd88::1), host2, ...")
	o.impairment.Add(f, "private in-memory network: ")
	f.BoolVar(&o.report, "report", false, "private service: at the end, report drops, retransmissions and congestion on standard error")
	f.StringVar(&o.capture, "capture", "", "private service: pcapng `file` for all packets, with the outcome of each")
	f.StringVar(&o.libraries, "libraries", "", "`directory` of libibverbs.so.1 and librdmacm.so.1")
	f.BoolVar(&o.preload, "preload", false, "load the libraries with LD_PRELOAD, for programs with a built-in library path (RPATH)")
	f.BoolVar(&o.sysfs, "sysfs", false, "show the devices in /sys/class/infiniband and /dev/infiniband of the program")
	f.BoolVar(&o.inside, inside, false, "")
	f.BoolVar(&o.guard, guarding, false, "")
	_ = errors.Join(f.MarkHidden(inside), f.MarkHidden(guarding))
	return cmd
}

func requireProgram(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usage(errors.New("no program given: roced exec -- PROGRAM [ARGUMENT...]"))
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
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) // a signal ignored here would be ignored in the program too
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
		return o.runWithPrivateService(&p)
	case o.inside:
		if err := errors.Join(showDevices(p.socket), dropPrivileges()); err != nil {
			return fmt.Errorf("--sysfs: %w", err)
		}
	case o.sysfs:
		return p.run()
	}
	return p.become()
}

// maxHosts is the limit of --hosts.
const maxHosts = 1000

// check validates the flags before anything is opened. A flag of a private in-memory network implies that
// network.
func (o *options) check() error {
	private := o.privateFlag()
	if private != "" && o.network == "" && o.socket == "" {
		o.network = inMemory
	}
	kind, known := networks[o.network]
	switch {
	case !known:
		return fmt.Errorf("--network must be loopback, udp or xdp: %q", o.network)
	case o.network != "" && o.socket != "":
		return errors.New("--network starts a private service and cannot be combined with --socket")
	case o.device != "" && kind == "":
		return errors.New("--device requires --network udp or xdp")
	case o.socket != "" && private != "":
		return fmt.Errorf("--%s requires a private service and cannot be combined with --socket; use roced show stat and roced dump for that service", private)
	case o.hosts < 0 || o.hosts > maxHosts:
		return fmt.Errorf("--hosts must be from 0 to %d: %d", maxHosts, o.hosts)
	case kind != "" && (o.impairment.Given() != "" || o.hosts > 0):
		return fmt.Errorf("--%s requires --network loopback, not %s", private, o.network)
	case kind == "":
		return o.describeMemory()
	}
	return nil
}

// privateFlag returns the first given flag that needs a private service, or "".
func (o *options) privateFlag() string {
	switch {
	case o.impairment.Given() != "":
		return o.impairment.Given()
	case o.hosts != 0:
		return "hosts"
	case o.report:
		return "report"
	case o.capture != "":
		return "capture"
	}
	return ""
}
