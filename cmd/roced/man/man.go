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

const help = `Without a name it shows roced(8), else the page of that command, as of "roced man ping"
and "roced man show gid"; "roced man roced.toml" shows that of the service's configuration.
It needs man(1); --help of each command says the same without.`

// New is the command.
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
				return cli.Usage(errors.New("--write writes all pages, and takes no COMMAND"))
			case write != "":
				return manual.Write(cmd.Root(), write)
			}
			return show(cmd, args)
		},
	}
	cmd.Flags().StringVar(&write, "write", "", "write all pages into a `folder` instead")
	return cmd
}

// show has man(1) show a page.
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
		return fmt.Errorf("man(1) is not installed: %w; roced %s --help says the same", unix.ENOENT, strings.Join(args, " "))
	}
	return run(cmd, viewer, page)
}

// output keeps the error of a write, which man(1) does not report.
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

// run runs man(1). Its reader may go before the end of the page, as head(1) does: that is no error. SIGPIPE is ignored
// by this process, and would be ignored by man(1) too, which then complains.
func run(cmd *cobra.Command, viewer, page string) error {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, unix.SIGPIPE)
	defer signal.Ignore(unix.SIGPIPE)
	said := &strings.Builder{}
	man := exec.CommandContext(cmd.Context(), viewer, "--local-file", "-")
	man.Stdin, man.Stdout, man.Stderr = strings.NewReader(page), cmd.OutOrStdout(), io.Writer(said)
	copied := &output{Writer: cmd.OutOrStdout()}
	if !cli.IsTerminal(copied.Writer) { // a terminal is for man(1)'s pager
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
