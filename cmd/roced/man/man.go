// SPDX-License-Identifier: Apache-2.0

package man

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/manual"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

const help = `Without COMMAND it shows roced(8), otherwise the page of that command, for example
"roced man ping" or "roced man show gid". "roced man roced.toml" shows the page of the
configuration file. It needs man(1); --help of each command prints the same text.`

// New returns the command.
func New() *cobra.Command {
	write := ""
	cmd := &cobra.Command{
		Use:     "man [COMMAND]",
		Short:   "Show a manual page",
		Long:    help,
		Example: "  roced man\n  roced man ping\n  roced man --write ./man",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case write != "" && len(args) > 0:
				return cli.Usage(errors.New("--write writes all pages and cannot be combined with COMMAND"))
			case write != "":
				return manual.Write(cmd.Root(), write)
			}
			return show(cmd, args)
		},
	}
	cmd.Flags().StringVar(&write, "write", "", "`directory` to write all pages to, instead of showing one")
	return cmd
}

// show shows a page with man(1).
func show(cmd *cobra.Command, args []string) error {
	pages := manual.Pages(cmd.Root())
	name := strings.Join(append([]string{"roced"}, args...), "-")
	page := pages[name+".8"]
	if len(args) == 1 && page == "" {
		page = pages[args[0]+".5"] // roced.toml
	}
	if page == "" {
		of, rest, err := cmd.Root().Traverse(args)
		if err != nil || len(rest) == 0 {
			of, rest = cmd.Root(), args
		}
		return cli.Unknown(of, rest[0])
	}
	viewer, err := exec.LookPath("man")
	if err != nil {
		return fmt.Errorf("man(1) is not installed: %w; use roced %s --help", unix.ENOENT, strings.Join(args, " "))
	}
	return run(cmd, viewer, page)
}

// output records write errors, which man(1) does not report.
type output struct {
	io.Writer
	failed error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (n int, err error) {
	n, err = o.Writer.Write(p)
	o.failed = err
	return n, err
}

// run runs man(1). A reader that closes the pipe early, such as head(1), is not an error. Go programs start
// with SIGPIPE ignored, which man(1) would inherit, so it is caught instead.
func run(cmd *cobra.Command, viewer, page string) error {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, unix.SIGPIPE)
	defer signal.Ignore(unix.SIGPIPE)
	said := &strings.Builder{}
	man := exec.CommandContext(cmd.Context(), viewer, "--local-file", "-")
	man.Stdin, man.Stdout, man.Stderr = strings.NewReader(page), cmd.OutOrStdout(), io.Writer(said)
	copied := &output{Writer: cmd.OutOrStdout()}
	if !cli.IsTerminal(copied.Writer) { // on a terminal, man(1) starts its pager
		man.Stdout = copied
	}
	err := man.Run()
	if copied.failed != nil {
		return copied.failed
	}
	if status, is := man.ProcessState.Sys().(syscall.WaitStatus); is && (status.Signal() == unix.SIGPIPE || status.ExitStatus() == cli.ExitPipe) {
		return cli.Ended{Code: cli.ExitPipe}
	}
	if err != nil {
		return fmt.Errorf("man: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}
