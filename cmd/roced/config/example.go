// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/spf13/cobra"
)

func newExampleCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "example",
		Short:   "Print a configuration file with all keys, their defaults and descriptions",
		Example: "  roced config example > roced.toml",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), config.Reference)
			return err
		},
	}
}
