package config

import (
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/spf13/cobra"
)

// New is the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration file of the service, or show an example",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage(fmt.Errorf("roced config knows no %q; it knows check and example", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCheckCommand(), newExampleCommand())
	return cmd
}
