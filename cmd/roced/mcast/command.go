package mcast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/cobra"
)

// options is the command line of mcast.
type options struct {
	card.Flags
	group      netip.Addr
	membership methodFlag
	qkey       number32
	count      int // 0: until Ctrl-C
	quiet      bool
	json       bool

	// of the sender
	send      bool
	sendOnly  bool
	size      int
	rate      int // messages a second, 0 for as fast as it goes
	immediate immediateFlag
	loopback  bool
	byID      bool

	out io.Writer
}

// senderFlags are those that only the sender has.
var senderFlags = []string{"send-only", "size", "rate", "imm", "loopback", "gid-index"}

// sendCount is how many messages are sent by default, as with mckey.
const sendCount = 10

const help = `Receives: joins the group and prints each message that comes, until --count or
Ctrl-C. With --send it sends to the group, and prints what comes meanwhile: its own
messages too, unless --loopback=false. This is what mckey of rdma-core does.

Sender and receivers need the same Q_Key. That of rdma_cm (mckey, its UDP port
space) is 0x01234567; perftest uses 0x11111111.

A full member makes the host a member of the group, which IGMP or MLD tells
the network. To see it: ip maddr show dev DEVICE here, bridge mdb show on a Linux
switch. A sender with --send-only is never reported, receives nothing, and
needs no membership.

Nothing comes? Switches that snoop forward a group only where it was asked for, and
forget that when nobody repeats the question: Linux bridges after 260 seconds.
Such a network needs a querier: ip link set dev BRIDGE type bridge mcast_querier 1.

An interface without an address can receive, but not with --cm. A sender needs one. ff00::/16 and ff01::/16
stay inside a host; ff02::/16 is the link's, also written with a zone: ff02::1%DEVICE.

While a member is there, the group's RoCEv2 packets (UDP port 4791) that come in on
this interface reach nobody else on this host: no socket, no macvlan or bridge behind it.
Over UDP sockets (--network udp) they do.`

const examples = `  roced mcast -d eth0 239.1.2.3                      on some hosts
  roced mcast -d eth0 239.1.2.3 --send --send-only   on another
  roced mcast -d eth0 ff0e::1:2 --count 1000 --quiet --json`

// New is the command. It logs to log.
func New(log *slog.Logger) *cobra.Command {
	o := &options{Flags: card.Flags{Log: log}, qkey: number32(verbs.UDPQKey)}
	cmd := &cobra.Command{
		Use:     "mcast -d DEVICE GROUP",
		Short:   "Receive what is sent to a multicast group, or send to it",
		Long:    help,
		Example: examples,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(fmt.Errorf("one GROUP is needed, such as 239.1.2.3 or ff0e::1:2, not %d; see %s --help", len(args), cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.out = cmd.OutOrStdout()
			if err := o.check(cmd, args[0]); err != nil {
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
	f.Var(&o.qkey, "qkey", "Q_Key, `32 bits`")
	f.IntVarP(&o.count, "count", "n", 0, "end after so many `messages`; 0: not before Ctrl-C (default 0, with --send 10)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print the summary only")
	f.BoolVarP(&o.json, "json", "j", false, "print JSON, an object a line")
	f.Var(&o.membership, "membership", "`how` the host joins IPv4 groups: auto, netlink (an address with autojoin), socket")
	f.BoolVar(&o.send, "send", false, "send")
	f.BoolVar(&o.sendOnly, "send-only", false, "with --send: as a send-only member")
	cli.AddSize(f, &o.size, "size", "s", 100, "with --send: `bytes` of payload")
	f.IntVar(&o.rate, "rate", 0, "with --send: `messages` a second; 0: as fast as it goes")
	f.Var(&o.immediate, "imm", "with --send: immediate `data`: qpn (this QP's number), none, or 32 bits")
	f.BoolVar(&o.byID, "cm", false, "join by a connection id (rdma_cm), which needs an address")
	f.BoolVar(&o.loopback, "loopback", true, "with --send: receive its own messages too")
}

// check finds mistakes before anything is opened.
func (o *options) check(cmd *cobra.Command, group string) (err error) {
	if err := o.Flags.Check(); err != nil {
		return err
	}
	if o.group, err = card.ParseGroup("GROUP", group, o.Device); err != nil {
		return err
	}
	for _, flag := range senderFlags {
		if !o.send && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for the sender: add --send", flag)
		}
	}
	if o.send && !cmd.Flags().Changed("count") {
		o.count = sendCount
	}
	switch {
	case o.OverUDP() && o.membership.MembershipMethod == hca.MembershipNetlink:
		return errors.New("--network udp and --membership netlink exclude each other: over UDP sockets the host joins by sockets; leave out one of them")
	case o.sendOnly && cmd.Flags().Changed("loopback"):
		return errors.New("--loopback: a send-only member receives nothing")
	case o.count < 0:
		return fmt.Errorf("--count %d: must be 0 or more", o.count)
	case o.size < 0 || o.size > 4096:
		return fmt.Errorf("--size %d: 0 to 4096 bytes, the largest RDMA MTU", o.size)
	case o.rate < 0 || o.rate > cli.MaxRate:
		return fmt.Errorf("--rate %d: 0 to %d messages a second", o.rate, cli.MaxRate)
	}
	return nil
}

func (o *options) run(cmd *cobra.Command) error {
	d, err := o.Open(cmd.Context(), hca.WithMembership(o.membership.MembershipMethod))
	if err != nil {
		return err
	}
	return d.Use(cmd.Context(), func(ctx context.Context) error { return runMember(ctx, d, o) })
}
