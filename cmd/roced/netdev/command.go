package netdev

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs/netdev"
	"github.com/spf13/cobra"
)

// options is the command line of netdev.
type options struct {
	card.Flags
	name      string
	addresses []string
	id        int
	group     string
	device    netdev.Options

	out io.Writer
}

const help = `Makes an interface (TUN), and carries its IP packets over RoCEv2 to the other hosts that run
roced netdev with the same --id. Until Ctrl-C; then the interface is gone, and after kill -9 too.

Hosts find each other by a group: 239.192.0.0 plus the id, or ff15::7b6e:0 plus the id where the
device has no IPv4 address. Multicast and broadcast travel in it. For other packets the group is asked
who has the address, whatever the IP version. Addresses and routes are set with --address, or with ip(8)
at any time. Nothing is encrypted, and who is on the network can claim any address in it, as on an Ethernet.

The interface's MTU is what a datagram takes less 4 bytes, but at least 1280, which IPv6 needs. A longer
packet travels in up to 16 pieces: --mtu 9000 on all hosts makes bulk TCP faster, since the interface
is asked less often.

It needs CAP_NET_ADMIN for the interface. The card may be the service's (--socket), or over UDP sockets.`

const examples = `  roced netdev -d eth0 --address 192.168.7.1/24            on one host
  roced netdev -d eth0 --address 192.168.7.2/24            on the other
  ping 192.168.7.2
  roced netdev -d eth0 --id 5 --name storage --address fd07::1/64 --mtu 9000`

// New is the command. It logs to log.
func New(log *slog.Logger) *cobra.Command {
	o := &options{Flags: card.Flags{Log: log}}
	cmd := &cobra.Command{
		Use:     "netdev -d DEVICE",
		Short:   "Carry IP between hosts: an interface whose packets travel over RoCEv2",
		Long:    help,
		Example: examples,
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.OutOrStdout()
			if err := o.check(); err != nil {
				return cli.Usage(err)
			}
			return o.run(cmd)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	o.Flags.Add(f)
	f.StringVar(&o.name, "name", "roce%d", "the interface's `name`; %d is the first free number")
	f.StringArrayVarP(&o.addresses, "address", "a", nil, "`address` of the interface with its length, such as 192.168.7.1/24; may be repeated")
	f.IntVar(&o.id, "id", 0, "`network`, 0 to 65535: hosts of one id hear each other")
	f.StringVar(&o.group, "group", "", "the network's multicast `group`, instead of the one of the id")
	cli.AddSize(f, &o.device.MTU, "mtu", "", 0, "the interface's MTU in `bytes`, the same on all hosts; 0: a datagram, 1280 at least")
	f.IntVar(&o.device.MaxNeighbours, "neighbours", 1024, "how many `hosts` are known at most")
}

// check finds mistakes before anything is opened.
func (o *options) check() (err error) {
	if err := o.Flags.Check(); err != nil {
		return err
	}
	for _, text := range o.addresses {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--address %s: an address with its length, such as 192.168.7.1/24 or fd07::1/64", text)
		}
		o.device.Addresses = append(o.device.Addresses, p)
	}
	if o.group != "" {
		if o.device.Group, err = card.ParseGroup("--group", o.group, o.Device); err != nil {
			return err
		}
	}
	switch {
	case o.id < 0 || o.id > 0xffff:
		return fmt.Errorf("--id %d: 0 to 65535", o.id)
	case o.device.MTU != 0 && (o.device.MTU < 68 || o.device.MTU > 65472):
		return fmt.Errorf("--mtu %d: 68 to 65472 bytes, or 0", o.device.MTU)
	case o.device.MaxNeighbours < 1 || o.device.MaxNeighbours > 1<<20:
		return fmt.Errorf("--neighbours %d: 1 to %d", o.device.MaxNeighbours, 1<<20)
	}
	return nil
}

func (o *options) run(cmd *cobra.Command) error {
	d, err := o.Open(cmd.Context())
	if err != nil {
		return err
	}
	return d.Use(cmd.Context(), func(ctx context.Context) error { return carry(ctx, d, o) })
}
