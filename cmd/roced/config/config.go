package config

import "github.com/spf13/cobra"

// New is the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration file of the service, or show an example",
	}
	cmd.AddCommand(newCheckCommand(), newExampleCommand())
	return cmd
}
