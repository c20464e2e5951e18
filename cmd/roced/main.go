package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signalContext(context.Background())
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes. A run that a signal ended has 128 and the signal's number, as in a shell.
const (
	exitFailed = 1
	exitUsage  = 2
	exitSignal = 128
)

// run carries out one command line and gives the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand(stderr)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "roced:", oneLine(err))
	return exitCode(err)
}

func exitCode(err error) int {
	var stopped *signalError
	switch {
	case errors.As(err, &stopped):
		return exitSignal + int(stopped.signal)
	case errors.As(err, new(usageError)):
		return exitUsage
	}
	return exitFailed
}

// oneLine joins what errors.Join keeps on lines of their own.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// usageError is a mistake in the command line, found before anything was done.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func newRootCommand(stderr io.Writer) *cobra.Command {
	var level slog.LevelVar
	level.Set(slog.LevelWarn)
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: &level}))
	root := &cobra.Command{
		Use:   "roced",
		Short: "Software RoCEv2 for any Linux network card",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q; roced help lists them", args[0])}
			}
			return nil
		},
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().TextVar(&level, "log-level", &level, "least `level` of messages on stderr: debug, info, warn, error")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(newDemoCommand(log), newMcastCommand(log), newPerfCommand(log), newPingCommand(log), newShowCommand(), newVersionCommand())
	return root
}

// noArguments is for commands that take flags only.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument %q; see %[1]s --help", cmd.CommandPath(), args[0])}
	}
	return nil
}

// makeRoom lets goroutines run beside threads that spin: two spinners at GOMAXPROCS 2 delay
// the others by 10 ms.
func makeRoom(spinners int) { runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), spinners+2)) }
