package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// flagError says what is wrong with a flag, and where its help is. A flag behind an unknown subcommand is that one's: the
// error is of the subcommand.
func flagError(cmd *cobra.Command, err error) error {
	if names := cmd.Flags().Args(); len(names) > 0 && cmd.HasAvailableSubCommands() {
		return Unknown(cmd, names[0])
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if wrong := wrongValue(invalid); wrong != "" {
			err = fmt.Errorf("--%s: %s", invalid.GetFlag().Name, wrong)
		}
	}
	return Usage(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
}

// wrongValue says in plain words why a value is no number, truth value or time; empty if it should have been another thing.
func wrongValue(invalid *pflag.InvalidValueError) string {
	var number *strconv.NumError
	switch is := errors.As(invalid, &number); {
	case is && errors.Is(number, strconv.ErrRange):
		return fmt.Sprintf("%s is too large or too small", number.Num)
	case is && number.Func == "ParseBool":
		return fmt.Sprintf("%q is neither true nor false", number.Num)
	case is && number.Func == "ParseUint":
		return fmt.Sprintf("%q is not a whole number from 0 on", number.Num)
	case is && number.Func == "ParseFloat":
		return fmt.Sprintf("%q is not a number", number.Num)
	case is:
		return fmt.Sprintf("%q is not a whole number", number.Num)
	case invalid.GetFlag().Value.Type() == "bytes":
		return errors.Unwrap(invalid).Error()
	case invalid.GetFlag().Value.Type() == "duration":
		return fmt.Sprintf("%q is not a time, such as 200ms, 5s or 1m30s", invalid.GetValue())
	}
	return ""
}
