// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// Exit codes. After a signal the code is 128 plus the signal number, as in a shell.
const (
	ExitFailed = 1
	ExitUsage  = 2
	ExitSignal = 128
	ExitPipe   = ExitSignal + int(unix.SIGPIPE) // the reader has closed the output
)

// Commands creates the subcommands. Their logger has the level of --log-level.
type Commands func(log *slog.Logger) []*cobra.Command

// Main runs the command line of the process and exits.
func Main(commands Commands) {
	ctx, stop := signalContext(context.Background())
	code := Run(ctx, commands, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run runs a command line and returns its exit code.
func Run(ctx context.Context, commands Commands, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand(commands, stderr)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	helped := reportHelp(root)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = *helped
	}
	if err == nil {
		return 0
	}
	if isBrokenPipe(err) {
		return ExitPipe
	}
	if ended := (Ended{}); errors.As(err, &ended) {
		return ended.Code
	}
	fmt.Fprintln(stderr, "roced:", oneLine(err)+remedy(err))
	return exitCode(err)
}

// reportHelp makes all commands write their help in one call and records its error, which cobra ignores.
func reportHelp(root *cobra.Command) (failed *error) {
	failed = new(error)
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		out, text := cmd.OutOrStdout(), &bytes.Buffer{}
		cmd.SetOut(text)
		show(cmd, args)
		cmd.SetOut(out)
		_, *failed = text.WriteTo(out)
	})
	return failed
}

func exitCode(err error) int {
	var stopped *signalError
	switch {
	case errors.As(err, &stopped):
		return ExitSignal + int(stopped.signal)
	case errors.As(err, new(usageError)):
		return ExitUsage
	}
	return ExitFailed
}

// isBrokenPipe reports whether the reader closed the output, as head(1) does, which is not reported.
func isBrokenPipe(err error) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && failed.Path == os.Stdout.Name() && errors.Is(failed, unix.EPIPE)
}

// oneLine joins the lines of errors.Join.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// remedy returns the remedy for an exhausted limit of the host; "" for other errors and if the error already has it.
func remedy(err error) string {
	if (errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)) && !strings.Contains(err.Error(), "ulimit") {
		return "; raise the limit of descriptors (ulimit -n; LimitNOFILE= in a systemd unit)"
	}
	return ""
}

// newRootCommand returns roced without a subcommand, which lists the subcommands.
func newRootCommand(commands Commands, stderr io.Writer) *cobra.Command {
	var level slog.LevelVar
	level.Set(slog.LevelWarn)
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: &level}))
	root := &cobra.Command{
		Use:           "roced",
		Short:         "Software RoCEv2 for any Linux NIC",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().TextVar(&level, "log-level", &level, "minimum `level` of log messages on stderr: debug, info, warn or error (default of run: that of the configuration)")
	_ = root.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(commands(log)...)
	root.InitDefaultCompletionCmd()
	root.SetHelpCommand(newHelpCommand())
	addGroups(root)
	addCompletions(root)
	addVersion(root)
	return root
}
