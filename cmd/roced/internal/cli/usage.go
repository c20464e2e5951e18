// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is an invalid command line, detected before anything was done.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage marks an error as an invalid command line.
func Usage(err error) error { return usageError{err} }

// NoArguments validates the arguments of commands that accept none.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(fmt.Errorf("%s accepts no arguments: %q; see %[1]s --help", cmd.CommandPath(), args[0]))
	}
	return nil
}

// Names validates the arguments of commands that accept from one to most names.
func Names(most int) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return Usage(fmt.Errorf("no NAME given; see %s --help", cmd.CommandPath()))
		case len(args) > most:
			return Usage(fmt.Errorf("%s accepts at most %d NAME (got %d): unexpected %q", cmd.CommandPath(), most, len(args), args[most]))
		}
		return nil
	}
}

// flagError adds the flag and the help to an error. For a flag after an unknown subcommand it reports the
// subcommand.
func flagError(cmd *cobra.Command, err error) error {
	if names := cmd.Flags().Args(); len(names) > 0 && cmd.HasAvailableSubCommands() {
		return Unknown(cmd, names[0])
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if text := wrongValue(invalid); text != "" {
			err = fmt.Errorf("--%s: %s", invalid.GetFlag().Name, text)
		}
	}
	return Usage(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
}

// wrongValue returns the error of an invalid number, boolean or duration; empty for other types.
func wrongValue(invalid *pflag.InvalidValueError) string {
	var number *strconv.NumError
	switch is := errors.As(invalid, &number); {
	case is && errors.Is(number, strconv.ErrRange):
		return fmt.Sprintf("%s is out of range", number.Num)
	case is && number.Func == "ParseBool":
		return fmt.Sprintf("%q is neither true nor false", number.Num)
	case is && number.Func == "ParseUint":
		return fmt.Sprintf("%q is not a non-negative integer", number.Num)
	case is && number.Func == "ParseFloat":
		return fmt.Sprintf("%q is not a number", number.Num)
	case is:
		return fmt.Sprintf("%q is not an integer", number.Num)
	case invalid.GetFlag().Value.Type() == "bytes":
		return errors.Unwrap(invalid).Error()
	case invalid.GetFlag().Value.Type() == "duration":
		return fmt.Sprintf("%q is not a duration, such as 200ms, 5s or 1m30s", invalid.GetValue())
	}
	return ""
}
