package exec

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"golang.org/x/sys/unix"
)

// passedOn are the signals that the program gets from the command.
var passedOn = []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT, unix.SIGWINCH}

// runProgram runs the program as a child, and ends as it ends.
func runProgram(path string, args, environment []string) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn...)
	defer signal.Stop(signals)
	child, err := os.StartProcess(path, args, &os.ProcAttr{Env: environment, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return &programError{fmt.Errorf("run %s: %w", path, err)}
	}
	done := make(chan struct{})
	passing := make(chan struct{})
	go func() {
		defer close(passing)
		passOn(child, signals, done)
	}()
	state, err := child.Wait()
	close(done)
	<-passing
	if err != nil {
		return fmt.Errorf("wait for %s: %w", path, err)
	}
	return ending(state.Sys().(syscall.WaitStatus))
}

// passOn gives signals to the program. What a terminal sends goes to all that run in its foreground, to the program
// too, and is not given twice.
func passOn(child *os.Process, signals <-chan os.Signal, done <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if fromTerminal(s) && inForeground() {
				continue
			}
			_ = child.Signal(s) // else it has ended
		case <-done:
			return
		}
	}
}

func fromTerminal(s os.Signal) bool {
	return s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGWINCH
}

// inForeground says whether the command is of those that its terminal's signals go to.
func inForeground() bool {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// ending is how the program has ended: nil if all went well.
func ending(status syscall.WaitStatus) error {
	switch {
	case status.Signaled():
		return cli.Ended{Code: cli.ExitSignal + int(status.Signal())}
	case status.ExitStatus() != 0:
		return cli.Ended{Code: status.ExitStatus()}
	}
	return nil
}
