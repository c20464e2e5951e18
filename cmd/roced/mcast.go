package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"

	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/cobra"
)

// mcastOptions is the command line of mcast.
type mcastOptions struct {
	cardFlags
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

	out io.Writer
}

// senderFlags are those that only the sender has.
var senderFlags = []string{"send-only", "size", "rate", "imm", "loopback", "gid-index"}

const (
	sendCount = 10 // messages that are sent if nothing else is asked for, as mckey does
	maxRate   = 1_000_000_000
)

const mcastHelp = `Receives: joins the group and prints each message that comes, until --count or
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

An interface without an address can receive. A sender needs one. ff00::/16 and ff01::/16
stay inside a host; ff02::/16 is the link's, also written with a zone: ff02::1%DEVICE.

While a member is there, the group's RoCEv2 packets (UDP port 4791) that come in on
this interface reach nobody else on this host: no socket, no macvlan or bridge behind it.`

const mcastExamples = `  roced mcast -d eth0 239.1.2.3                      on some hosts
  roced mcast -d eth0 239.1.2.3 --send --send-only   on another
  roced mcast -d eth0 ff0e::1:2 --count 1000 --quiet --json`

func newMcastCommand(log *slog.Logger) *cobra.Command {
	o := &mcastOptions{cardFlags: cardFlags{log: log}, qkey: number32(verbs.UDPQKey)}
	cmd := &cobra.Command{
		Use:     "mcast -d DEVICE GROUP",
		Short:   "Receive what is sent to a multicast group, or send to it",
		Long:    mcastHelp,
		Example: mcastExamples,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("one GROUP is needed, such as 239.1.2.3 or ff0e::1:2, not %d; see %s --help", len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.out = cmd.OutOrStdout()
			if err := o.check(cmd, args[0]); err != nil {
				return usageError{err}
			}
			return o.run(cmd)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *mcastOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	o.cardFlags.add(f)
	f.Var(&o.qkey, "qkey", "Q_Key, `32 bits`")
	f.IntVarP(&o.count, "count", "n", 0, "end after so many `messages`; 0: not before Ctrl-C (default 0, with --send 10)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print the summary only")
	f.BoolVar(&o.json, "json", false, "print JSON, an object a line")
	f.Var(&o.membership, "membership", "`how` the host joins IPv4 groups: auto, netlink (an address with autojoin), socket")
	f.BoolVar(&o.send, "send", false, "send")
	f.BoolVar(&o.sendOnly, "send-only", false, "with --send: as a send-only member")
	f.IntVarP(&o.size, "size", "s", 100, "with --send: `bytes` of payload")
	f.IntVar(&o.rate, "rate", 0, "with --send: `messages` a second; 0: as fast as it goes")
	f.Var(&o.immediate, "imm", "with --send: immediate `data`: qpn (the own QP's number), none, or 32 bits")
	f.BoolVar(&o.loopback, "loopback", true, "with --send: receive the own messages too")
}

// check finds mistakes before anything is opened.
func (o *mcastOptions) check(cmd *cobra.Command, group string) (err error) {
	if err := o.cardFlags.check(); err != nil {
		return err
	}
	if o.group, err = parseGroup(group, o.device); err != nil {
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
	case o.sendOnly && cmd.Flags().Changed("loopback"):
		return errors.New("--loopback: a send-only member receives nothing")
	case o.count < 0:
		return fmt.Errorf("--count %d: from 0 on", o.count)
	case o.size < 0 || o.size > 4096:
		return fmt.Errorf("--size %d: 0 to 4096 bytes, the largest RDMA MTU", o.size)
	case o.rate < 0 || o.rate > maxRate:
		return fmt.Errorf("--rate %d: 0 to %d messages a second", o.rate, maxRate)
	}
	return nil
}

// parseGroup reads a multicast address. An IPv6 zone may say once more which interface it is.
func parseGroup(text, device string) (netip.Addr, error) {
	group, err := netip.ParseAddr(text)
	zone := group.Zone()
	group = group.Unmap().WithZone("")
	switch {
	case err != nil:
		return group, fmt.Errorf("GROUP %q is not an IP address; 239.1.2.3 and ff0e::1:2 are groups'", text)
	case !group.IsMulticast():
		return group, fmt.Errorf("GROUP %s is no multicast address: 224.0.0.0/4 and ff00::/8 are", text)
	case zone != "" && zone != device:
		return group, fmt.Errorf("GROUP %s is one of interface %s, and -d names %s", text, zone, device)
	}
	if _, err := mcast.MGID(group); err != nil {
		return group, fmt.Errorf("GROUP %s: %w", text, err)
	}
	return group, nil
}

func (o *mcastOptions) run(cmd *cobra.Command) error {
	d, err := o.open(hca.WithMembership(o.membership.Method))
	if err != nil {
		return err
	}
	return d.use(cmd.Context(), func(ctx context.Context) error { return runMember(ctx, d, o) })
}
