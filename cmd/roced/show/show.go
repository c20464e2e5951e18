package show

import (
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/spf13/cobra"
)

// New is the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show what the service has: devices, clients, objects, counters",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage(fmt.Errorf("roced show knows no %q; roced show --help lists what it shows", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, n := range nouns {
		cmd.AddCommand(n.command())
	}
	cmd.AddCommand(newGIDCommand())
	return cmd
}
