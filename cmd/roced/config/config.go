// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/spf13/cobra"

// New returns the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration file of the service, or print an example",
	}
	cmd.AddCommand(newCheckCommand(), newExampleCommand())
	return cmd
}
