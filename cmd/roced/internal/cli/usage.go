package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// usageError is a mistake in the command line, found before anything was done.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage marks a mistake in the command line.
func Usage(err error) error { return usageError{err} }

// NoArguments is for commands that take flags only.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(fmt.Errorf("%s takes no argument %q; see %[1]s --help", cmd.CommandPath(), args[0]))
	}
	return nil
}

// Names is for commands that take so many names at most, and at least one.
func Names(most int) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return Usage(fmt.Errorf("which one? A NAME is missing; see %s --help", cmd.CommandPath()))
		case len(args) > most:
			return Usage(fmt.Errorf("%s takes %d name, not %d: %q is too much", cmd.CommandPath(), most, len(args), args[most]))
		}
		return nil
	}
}
