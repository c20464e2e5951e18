// SPDX-License-Identifier: Apache-2.0

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

// options holds the command line of netdev.
type options struct {
	card.Flags
	name      string
	addresses []string
	id        int
	group     string
	device    netdev.Options

	out io.Writer
}

const help = `Creates a TUN interface and carries its IP packets over RoCEv2 to the other hosts that run
roced netdev with the same --id. The interface is removed on Ctrl-C, and also after kill -9.

Hosts discover each other by a multicast group: 239.192.0.0 plus the id, or ff15::7b6e:0 plus the id
if the device has no IPv4 address. The group carries multicast and broadcast packets, and queries for
the owner of an address, of either IP version. Set addresses and routes with --address, or with ip(8)
at any time. Packets are not encrypted, and any host on the network can claim any address, as on Ethernet.

The default MTU is the payload of a datagram less 4 bytes, but at least 1280, the minimum of IPv6. A
longer packet is split into up to 16 parts. Use --mtu 9000 on all hosts for faster bulk TCP: the
interface is then read less often.

The interface needs CAP_NET_ADMIN. The device may belong to the service (--socket) or use UDP sockets.`

const examples = `  roced netdev -d eth0 --address 192.168.7.1/24            on the first host
  roced netdev -d eth0 --address 192.168.7.2/24            on the second host
  ping 192.168.7.2
  roced netdev -d eth0 --id 5 --name storage --address fd07::1/64 --mtu 9000`

// New returns the command. It logs to log.
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
	f.StringVar(&o.name, "name", "roce%d", "interface `name`; %d is replaced by the first free number")
	f.StringArrayVarP(&o.addresses, "address", "a", nil, "`address` of the interface with prefix length, such as 192.168.7.1/24; may be repeated")
	f.IntVar(&o.id, "id", 0, "`network` number, 0 to 65535: hosts with the same number communicate")
	f.StringVar(&o.group, "group", "", "multicast `group` of the network, instead of that of the id")
	cli.AddSize(f, &o.device.MTU, "mtu", "", 0, "MTU of the interface in `bytes`, the same on all hosts; 0: one datagram, at least 1280")
	f.IntVar(&o.device.MaxNeighbours, "neighbours", 1024, "maximum number of known `hosts`")
}

// check rejects invalid flags before anything is opened.
func (o *options) check() (err error) {
	if err := o.Flags.Check(); err != nil {
		return err
	}
	for _, text := range o.addresses {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--address must have a prefix length, such as 192.168.7.1/24 or fd07::1/64: %s", text)
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
		return fmt.Errorf("--id must be 0 to 65535: %d", o.id)
	case o.device.MTU != 0 && (o.device.MTU < 68 || o.device.MTU > 65472):
		return fmt.Errorf("--mtu must be 0, or 68 to 65472 bytes: %d", o.device.MTU)
	case o.device.MaxNeighbours < 1 || o.device.MaxNeighbours > 1<<20:
		return fmt.Errorf("--neighbours must be 1 to %[2]d: %[1]d", o.device.MaxNeighbours, 1<<20)
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
