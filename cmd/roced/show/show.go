// SPDX-License-Identifier: Apache-2.0

package show

import "github.com/spf13/cobra"

// New returns the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show devices, clients, objects and counters of the service",
	}
	for _, n := range nouns {
		cmd.AddCommand(n.command())
	}
	cmd.AddCommand(newGIDCommand())
	return cmd
}
