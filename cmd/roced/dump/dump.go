// SPDX-License-Identifier: Apache-2.0

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

// options holds the command line.
type options struct {
	daemon.Flags
	file   string
	qp     string
	group  string
	snap   int
	filter proto.CaptureRequest
}

const help = `Writes the packets of a device of the service as pcapng, which tshark and Wireshark can
read while it is written, until Ctrl-C or the end of the device. Received packets are
those that XDP steers to the device, which tcpdump does not see.

Each packet has a comment with its outcome: sent; delivered, with the queue pair or the
number of group members; or dropped, with the name of the counter (roced show stat). Later
events are not included: the interface may still drop a sent packet, and a packet to a
large group may be delivered to more members. Packets that XDP itself drops or passes to
the host are not included.

The device does not wait for the reader. Unread packets are lost; the next packet has
their number (frame.drop_count in tshark).

tshark and Wireshark decode short SENDs of connections as RPC over RDMA and report
"[Malformed Packet]". Use --disable-protocol rpcordma (Analyze, Enabled Protocols) to
show them as RoCE with data.

Only root and the user of the service can capture, because captures contain the messages
of all programs.`

const examples = `  roced dump -d eth0 | tshark -i -
  roced dump -d eth0 | tshark -i - --disable-protocol rpcordma
  roced dump -d eth0 --qp 0x4711 -w qp.pcapng
  roced dump -d eth0 --group 239.1.2.3 -s 128 | tshark -i - -T fields -e frame.time -e frame.comment`

// New returns the command.
func New() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "dump", Short: "Write the packets of a device as pcapng for tshark and Wireshark", Long: help, Example: examples, Args: cli.NoArguments,
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
	f.Lookup("device").Usage = "`name` of the device (default: the only one)"
	f.StringVarP(&o.file, "write", "w", "-", "output `file`; - is standard output")
	f.StringVar(&o.qp, "qp", "", "`number` of the queue pair whose packets to write (default: all)")
	f.StringVar(&o.group, "group", "", "multicast `address` whose packets to write (default: all)")
	cli.AddSize(f, &o.snap, "snaplen", "s", 0, "`bytes` to keep of each packet; 0 means all")
	return cmd
}

// maxQPN is the largest queue pair number.
const maxQPN = 0xFFFFFF

// check validates the flags before anything is opened.
func (o *options) check(out io.Writer) error {
	if o.file == "-" && cli.IsTerminal(out) {
		return errors.New("cannot write pcapng to a terminal: use -w FILE, or pipe the output to tshark -i -")
	}
	if o.snap < 0 {
		return fmt.Errorf("--snaplen must not be negative: %d", o.snap)
	}
	o.filter.Snap = uint32(o.snap)
	if o.qp != "" {
		number, err := strconv.ParseUint(o.qp, 0, 32)
		if err != nil || number == 0 || number > maxQPN {
			return fmt.Errorf("--qp must be from 1 to 0x%x: %q (roced show qp lists queue pairs)", maxQPN, o.qp)
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
	if ctx.Err() != nil || errors.Is(err, unix.EPIPE) { // the reader has closed the pipe
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("the capture ended: device %s or the service was closed", o.filter.Device)
}

// device returns the selected device, or the only one.
func (o *options) device(c *daemon.Connection) (string, error) {
	names, err := c.Choose(o.Device)
	if err == nil && len(names) != 1 {
		err = fmt.Errorf("select a device with -d: %q", names)
	}
	if err != nil {
		return "", err
	}
	return names[0], nil
}
