// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"golang.org/x/sys/unix"
)

// forwarded lists the signals that the command forwards to the program.
var forwarded = []os.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGCONT, unix.SIGTSTP, unix.SIGWINCH,
}

// program describes the program to run.
type program struct {
	path      string
	arguments []string // including the program's name
	libraries string   // directory
	socket    string   // of the service
	preload   bool
	sysfs     bool
}

// programError wraps the error of a program that cannot be run.
type programError struct{ error }

func (e *programError) Unwrap() error { return e.error }

// become replaces this process by the program.
func (p *program) become() error {
	err := syscall.Exec(p.path, p.arguments, p.environment())
	return &programError{fmt.Errorf("run %s: %w", p.path, err)}
}

// run runs the program as a child and returns its exit status as an error.
func (p *program) run() error {
	runtime.LockOSThread() // start's parent-death signal is sent when this thread ends
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	child, err := p.start()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	forwarding := make(chan struct{})
	go func() {
		defer close(forwarding)
		forward(child, signals, done)
	}()
	status, err := await(child)
	close(done)
	<-forwarding
	if err != nil {
		return fmt.Errorf("wait for %s: %w", p.path, err)
	}
	return ending(status)
}

// await waits until the program ends. When the terminal stops the program (Ctrl-Z), this command stops too,
// so that the shell sees a stopped job. SIGCONT is forwarded like other signals.
func await(child *os.Process) (status syscall.WaitStatus, err error) {
	for {
		_, err = syscall.Wait4(child.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return status, err
		case !status.Stopped():
			return status, child.Release()
		case status.StopSignal() != unix.SIGSTOP && hasTerminal():
			_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
		}
	}
}

// start starts the program or, for --sysfs, this command in new namespaces, where it becomes the program. If
// this command is killed, the kernel kills the program too.
func (p *program) start() (*os.Process, error) {
	attr := &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}}
	if !p.sysfs {
		attr.Env, attr.Sys = p.environment(), &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
		child, err := os.StartProcess(p.path, p.arguments, attr)
		if err != nil {
			return nil, &programError{fmt.Errorf("run %s: %w", p.path, err)}
		}
		return child, nil
	}
	again := []string{"roced", "exec", "--" + inside, "--libraries", p.libraries, "--preload=" + strconv.FormatBool(p.preload), "--"}
	attr.Env, attr.Sys = with(os.Environ(), "ROCED_SOCKET", p.socket), namespaces()
	child, err := os.StartProcess("/proc/self/exe", append(again, p.arguments...), attr)
	if err != nil {
		return nil, noNamespace(err)
	}
	return child, nil
}

// forward forwards signals to the program, except those that a terminal sends to its whole foreground process group,
// which includes the program.
func forward(child *os.Process, signals <-chan os.Signal, done <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if fromTerminal(s) && inForeground() {
				continue
			}
			_ = child.Signal(s) // an error means that it has ended
		case <-done:
			return
		}
	}
}

func fromTerminal(s os.Signal) bool {
	return s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGTSTP || s == unix.SIGWINCH
}

// inForeground reports whether this process group is the foreground group of its terminal.
func inForeground() bool {
	terminal, err := openTerminal()
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func hasTerminal() bool {
	terminal, err := openTerminal()
	if err == nil {
		terminal.Close()
	}
	return err == nil
}

// openTerminal opens the controlling terminal.
func openTerminal() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY, 0) }

// ending converts the exit status into an error; nil for success.
func ending(status syscall.WaitStatus) error {
	switch {
	case status.Signaled():
		return cli.Ended{Code: cli.ExitSignal + int(status.Signal())}
	case status.ExitStatus() != 0:
		return cli.Ended{Code: status.ExitStatus()}
	}
	return nil
}
