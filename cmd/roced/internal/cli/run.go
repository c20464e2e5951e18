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

// Exit codes. A run that a signal ended has 128 and the signal's number, as in a shell.
const (
	ExitFailed = 1
	ExitUsage  = 2
	ExitSignal = 128
	ExitPipe   = ExitSignal + int(unix.SIGPIPE) // the reader of the output has closed it
)

// Commands makes the subcommands. Their log is the one that --log-level is for.
type Commands func(log *slog.Logger) []*cobra.Command

// Main carries out the process's command line, and ends the process.
func Main(commands Commands) {
	ctx, stop := signalContext(context.Background())
	code := Run(ctx, commands, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run carries out one command line and gives the exit code.
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
	fmt.Fprintln(stderr, "roced:", oneLine(err)+cure(err))
	return exitCode(err)
}

// reportHelp has the help of all commands written at once, and keeps the error of that: cobra drops it.
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

// isBrokenPipe says that who read the output has gone, as head(1) does: that is no news.
func isBrokenPipe(err error) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && failed.Path == os.Stdout.Name() && errors.Is(failed, unix.EPIPE)
}

// oneLine joins what errors.Join keeps on lines of their own.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// cure says what to do where the host has come to a limit, whatever was being done; "" if the error is another one, or
// says it.
func cure(err error) string {
	if (errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)) && !strings.Contains(err.Error(), "ulimit") {
		return "; raise the limit of descriptors (ulimit -n; LimitNOFILE= in a systemd unit)"
	}
	return ""
}

// newRootCommand is roced without a subcommand: it lists them.
func newRootCommand(commands Commands, stderr io.Writer) *cobra.Command {
	var level slog.LevelVar
	level.Set(slog.LevelWarn)
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: &level}))
	root := &cobra.Command{
		Use:           "roced",
		Short:         "Software RoCEv2 for any Linux network card",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().TextVar(&level, "log-level", &level, "least `level` of messages on stderr: debug, info, warn, error; run has its configuration's, unless given")
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
