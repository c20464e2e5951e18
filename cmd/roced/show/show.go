package show

import "github.com/spf13/cobra"

// New is the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show what the service has: devices, clients, objects, counters",
	}
	for _, n := range nouns {
		cmd.AddCommand(n.command())
	}
	cmd.AddCommand(newGIDCommand())
	return cmd
}
