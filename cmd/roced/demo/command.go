package demo

import (
	"fmt"
	"log/slog"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/spf13/cobra"
)

// sizes are payloads in bytes: from nothing to all that an interface MTU of 1500 takes.
var sizes = []int{0, 1, 64, 256, 1000, 1024}

// New is the command. It logs to log.
func New(log *slog.Logger) *cobra.Command {
	messages := 10000
	var modes card.ModeFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show that it works: datagrams, connections, groups, the service; needs no set-up",
		Long: `Makes two network namespaces, joins them by a veth pair, opens a device in each and
sends unreliable datagrams both ways over IPv4 and IPv6. It connects the two, and
sends, writes, reads and adds over the connection. Then it puts three such hosts on
a bridge, and one of them sends to a multicast group that another one is in. Last,
two programs share the device of a service. Every byte is checked. Nothing on this
host is touched, and nothing is left behind.

Without root the hosts are in a user namespace and use UDP sockets, or, where the kernel
gives no user namespace, they are on a network in memory. With --network xdp, or a mode
of XDP, it needs root.`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if messages < 1 {
				return cli.Usage(fmt.Errorf("--count %d: at least 1 message a row", messages))
			}
			if err := modes.Check(); err != nil {
				return cli.Usage(err)
			}
			d := &demo{out: cmd.OutOrStdout(), log: log, messages: messages, modes: modes, errOut: cmd.ErrOrStderr()}
			if level := cmd.Flags().Lookup("log-level"); level != nil {
				d.level = level.Value.String()
			}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().IntVarP(&messages, "count", "n", messages, "`messages` a row")
	modes.Add(cmd.Flags())
	return cmd
}
