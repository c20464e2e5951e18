// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"log/slog"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/spf13/cobra"
)

// sizes are payloads in bytes: from 0 to the maximum for an interface MTU of 1500.
var sizes = []int{0, 1, 64, 256, 1000, 1024}

// New returns the command. It logs to log.
func New(log *slog.Logger) *cobra.Command {
	messages := 10000
	var modes card.ModeFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Demonstrate datagrams, connections, groups and the service; needs no setup",
		Long: `Creates two network namespaces, joins them by a veth pair, opens a device in each and
sends unreliable datagrams both ways over IPv4 and IPv6. Then it connects the two, and
runs SEND, WRITE, READ and atomics over the connection. Next it puts three such hosts on
a bridge, and one of them sends to a multicast group that another one has joined. Last,
two programs share the device of a service. Every byte is checked. The demo does not
change this host and leaves nothing behind.

Without root the hosts are in a user namespace and use UDP sockets; if the kernel does not
allow user namespaces, they are on an in-memory network. --network xdp and the XDP modes
need root.`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if messages < 1 {
				return cli.Usage(fmt.Errorf("--count must be at least 1: %d", messages))
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
	cmd.Flags().IntVarP(&messages, "count", "n", messages, "number of `messages` per row")
	modes.Add(cmd.Flags())
	return cmd
}
