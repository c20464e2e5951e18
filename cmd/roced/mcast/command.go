// SPDX-License-Identifier: Apache-2.0

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

// options holds the command line of mcast.
type options struct {
	card.Flags
	group      netip.Addr
	membership methodFlag
	qkey       number32
	count      int // 0: until Ctrl-C
	quiet      bool
	json       bool

	// options of the sender
	send      bool
	sendOnly  bool
	size      int
	rate      int // messages per second; 0 is unlimited
	immediate immediateFlag
	loopback  bool
	byID      bool

	out io.Writer
}

// senderFlags are the flags that require --send.
var senderFlags = []string{"send-only", "size", "rate", "imm", "loopback", "gid-index"}

// sendCount is the default number of messages, as in mckey.
const sendCount = 10

const help = `Joins the group and prints each received message, until --count or Ctrl-C. With --send it
sends to the group and also prints received messages, including its own unless
--loopback=false. The command corresponds to mckey of rdma-core.

Sender and receivers need the same Q_Key. rdma_cm (mckey, its UDP port space) uses
0x01234567, perftest 0x11111111.

A full member makes the host a member of the group, which is reported by IGMP or MLD. To
check: ip maddr show dev DEVICE on this host, bridge mdb show on a Linux switch. A sender
with --send-only is not reported, receives no messages and needs no membership.

Nothing received? Snooping switches forward a group only to ports with members and forget
members without regular queries, Linux bridges after 260 seconds. Such a network needs a
querier: ip link set dev BRIDGE type bridge mcast_querier 1.

A sender needs an interface with an address; a receiver does not, except with --cm.
Groups of ff00::/16 and ff01::/16 stay on the host; ff02::/16 is link-local, and can be
given with a zone: ff02::1%DEVICE. While a member exists, RoCEv2 packets of the group (UDP
port 4791) on this interface reach no other receiver on this host: no socket, macvlan or
bridge. With UDP sockets (--network udp) they do.`

const examples = `  roced mcast -d eth0 239.1.2.3                      on some hosts
  roced mcast -d eth0 239.1.2.3 --send --send-only   on another
  roced mcast -d eth0 ff0e::1:2 --count 1000 --quiet --json`

// New returns the command. It logs to log.
func New(log *slog.Logger) *cobra.Command {
	o := &options{Flags: card.Flags{Log: log}, qkey: number32(verbs.UDPQKey)}
	cmd := &cobra.Command{
		Use:     "mcast -d DEVICE GROUP",
		Short:   "Receive from a multicast group, or send to it",
		Long:    help,
		Example: examples,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(fmt.Errorf("exactly one GROUP is required, such as 239.1.2.3 or ff0e::1:2 (got %d); see %s --help", len(args), cmd.CommandPath()))
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
	f.IntVarP(&o.count, "count", "n", 0, "number of `messages`; 0 means until Ctrl-C (default 0, with --send 10)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print the summary only")
	f.BoolVarP(&o.json, "json", "j", false, "print JSON, one object per line")
	f.Var(&o.membership, "membership", "`method` of joining IPv4 groups: auto, netlink (an address with autojoin) or socket")
	f.BoolVar(&o.send, "send", false, "send to the group")
	f.BoolVar(&o.sendOnly, "send-only", false, "with --send: be a send-only member")
	cli.AddSize(f, &o.size, "size", "s", 100, "with --send: `bytes` of payload")
	f.IntVar(&o.rate, "rate", 0, "with --send: `messages` per second; 0 is unlimited")
	f.Var(&o.immediate, "imm", "with --send: immediate `data`: qpn (the own QP number), none, or a 32-bit number")
	f.BoolVar(&o.byID, "cm", false, "join with a connection id (rdma_cm); requires an address")
	f.BoolVar(&o.loopback, "loopback", true, "with --send: also receive own messages")
}

// check validates the flags before anything is opened.
func (o *options) check(cmd *cobra.Command, group string) (err error) {
	if err := o.Flags.Check(); err != nil {
		return err
	}
	if o.group, err = card.ParseGroup("GROUP", group, o.Device); err != nil {
		return err
	}
	for _, flag := range senderFlags {
		if !o.send && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s requires --send", flag)
		}
	}
	if o.send && !cmd.Flags().Changed("count") {
		o.count = sendCount
	}
	switch {
	case o.OverUDP() && o.membership.MembershipMethod == hca.MembershipNetlink:
		return errors.New("--network udp and --membership netlink cannot be combined: over UDP sockets the host joins by sockets")
	case o.sendOnly && cmd.Flags().Changed("loopback"):
		return errors.New("--loopback cannot be combined with --send-only: send-only members do not receive")
	case o.count < 0:
		return fmt.Errorf("--count must not be negative: %d", o.count)
	case o.size < 0 || o.size > 4096:
		return fmt.Errorf("--size must be from 0 to 4096 bytes, the largest RDMA MTU: %d", o.size)
	case o.rate < 0 || o.rate > cli.MaxRate:
		return fmt.Errorf("--rate must be from 0 to %d messages per second: %d", cli.MaxRate, o.rate)
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
