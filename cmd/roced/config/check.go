// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/spf13/cobra"
)

const checkHelp = `Checks a configuration file as roced run does, without opening devices. Each error is a
line:

  FILE:LINE:COLUMN: KEY: error; remedy

The default FILE is ` + config.DefaultPath + `. Whether interfaces and groups exist is not
checked.`

func newCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "check [FILE]",
		Short:   "Check a configuration file",
		Long:    checkHelp,
		Example: "  roced config check\n  roced config check ./roced.toml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usage(fmt.Errorf("%s accepts at most one FILE (got %d)", cmd.CommandPath(), len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file := config.DefaultPath
			if len(args) > 0 {
				file = args[0]
			}
			return check(file, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

func check(file string, out, errOut io.Writer) error {
	c, err := config.Load(file)
	var list config.Errors
	if errors.As(err, &list) {
		for _, m := range list {
			fmt.Fprintln(errOut, m)
		}
		return fmt.Errorf("%s in %s", cli.Several(uint64(len(list)), "error"), file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; create one with roced config example", err)
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "%s is valid: %s\n", file, cli.Several(uint64(len(c.Devices)), "device"))
	}
	return err
}
