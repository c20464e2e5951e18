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

const checkHelp = `Reads a configuration file as roced run does, and opens nothing. Each mistake is a line:

  FILE:LINE:COLUMN: KEY: what is wrong; what to write instead

Without FILE it is ` + config.DefaultPath + `. Whether interfaces and groups exist is
not looked at.`

func newCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "check [FILE]",
		Short:   "Find the mistakes in a configuration file",
		Long:    checkHelp,
		Example: "  roced config check\n  roced config check ./roced.toml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usage(fmt.Errorf("%s takes one FILE, not %d", cmd.CommandPath(), len(args)))
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
	var mistakes config.Mistakes
	if errors.As(err, &mistakes) {
		for _, m := range mistakes {
			fmt.Fprintln(errOut, m)
		}
		return fmt.Errorf("%s in %s", cli.Several(uint64(len(mistakes)), "mistake"), file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; roced config example shows one", err)
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "%s is right: %s\n", file, cli.Several(uint64(len(c.Devices)), "device"))
	}
	return err
}
