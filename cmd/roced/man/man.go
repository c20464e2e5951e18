package man

import (
	"errors"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/manual"
	"github.com/spf13/cobra"
)

// New is the command.
func New() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write the manual pages into a directory",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(errors.New("roced man takes one DIRECTORY"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return manual.Write(cmd.Root(), args[0]) },
	}
}
