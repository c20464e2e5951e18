package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// options is the command line.
type options struct {
	daemon.Flags
	file   string
	qp     string
	group  string
	snap   int
	filter proto.CaptureRequest
}

const help = `Writes the packets of a device of the service: those that XDP steers to it, which tcpdump
does not see, and those that it sends, until Ctrl-C or the device's end. It is pcapng,
which tshark and Wireshark read while it is written.

Each packet has a comment that says what became of it: sent; delivered, and to which
queue pair or to how many of a group; or dropped, by the name of the counter (roced show
stat). What becomes of it later is not in it: a packet that was sent may still be refused
by the interface, and one to a large group may be delivered to more of its members.
Packets that XDP itself drops or passes to the host are not in it.

The device does not wait: what is not read in time is lost, and the next packet says how
many were (frame.drop_count in tshark).

tshark and Wireshark take short SENDs of connections for RPC over RDMA, and then say
"[Malformed Packet]": --disable-protocol rpcordma (Analyze, Enabled Protocols) has them
shown as RoCE with data.

Only root and the service's own user may: all programs' messages are in it.`

const examples = `  roced dump -d eth0 | tshark -i -
  roced dump -d eth0 | tshark -i - --disable-protocol rpcordma
  roced dump -d eth0 --qp 0x4711 -w qp.pcapng
  roced dump -d eth0 --group 239.1.2.3 -s 128 | tshark -i - -T fields -e frame.time -e frame.comment`

// New is the command.
func New() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "dump", Short: "Write a device's packets, as pcapng for tshark and Wireshark", Long: help, Example: examples, Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.OutOrStdout()); err != nil {
				return cli.Usage(err)
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.Flags.Add(f)
	f.Lookup("device").Usage = "`name` of the device (default the only one)"
	f.StringVarP(&o.file, "write", "w", "-", "`file` to write to; -: standard output")
	f.StringVar(&o.qp, "qp", "", "only packets from or to the queue pair of this `number`")
	f.StringVar(&o.group, "group", "", "only packets to this multicast `address`")
	cli.AddSize(f, &o.snap, "snaplen", "s", 0, "`bytes` to keep of each packet; 0: all")
	return cmd
}

// maxQPN is the highest number of a queue pair.
const maxQPN = 0xFFFFFF

// check finds mistakes before anything is opened.
func (o *options) check(out io.Writer) error {
	if o.file == "-" && cli.IsTerminal(out) {
		return errors.New("pcapng is not for a terminal: -w FILE, or pipe it to tshark -i -")
	}
	if o.snap < 0 {
		return fmt.Errorf("--snaplen %d: 0 or more bytes", o.snap)
	}
	o.filter.Snap = uint32(o.snap)
	if o.qp != "" {
		number, err := strconv.ParseUint(o.qp, 0, 32)
		if err != nil || number == 0 || number > maxQPN {
			return fmt.Errorf("--qp %s: a number of 1 to 0x%x; roced show qp lists them", o.qp, maxQPN)
		}
		o.filter.QPN = verbs.QPN(number)
	}
	if o.group == "" {
		return nil
	}
	group, err := card.ParseGroup("--group", o.group, o.Device)
	if err == nil {
		o.filter.Group, err = mcast.MGID(group)
	}
	return err
}

func (o *options) run(ctx context.Context, out io.Writer) (err error) {
	c, err := daemon.Dial(ctx, o.Socket)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.filter.Device, err = o.device(c); err != nil {
		return err
	}
	packets, err := c.Capture(o.filter)
	if err != nil {
		return err
	}
	defer packets.Close()
	if o.file != "-" {
		file, err := os.Create(o.file)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	defer context.AfterFunc(ctx, func() { packets.Close() })()
	_, err = io.Copy(out, packets)
	if ctx.Err() != nil || errors.Is(err, unix.EPIPE) { // nobody wants more
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("the device %s, or the service, has ended", o.filter.Device)
}

// device is the one that is asked for, or the only one.
func (o *options) device(c *daemon.Connection) (string, error) {
	names, err := c.Choose(o.Device)
	if err == nil && len(names) != 1 {
		err = fmt.Errorf("name a device with -d; the service has %q", names)
	}
	if err != nil {
		return "", err
	}
	return names[0], nil
}
