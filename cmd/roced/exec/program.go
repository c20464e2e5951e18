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

// passedOn are the signals that the program gets from the command.
var passedOn = []os.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGCONT, unix.SIGTSTP, unix.SIGWINCH,
}

// program is what is to run, and over what.
type program struct {
	path      string
	arguments []string // the program's name first
	libraries string   // their folder
	socket    string   // the service's
	preload   bool
	sysfs     bool
}

// programError is that the program cannot be run.
type programError struct{ error }

func (e *programError) Unwrap() error { return e.error }

// become has the program take this process over.
func (p *program) become() error {
	err := syscall.Exec(p.path, p.arguments, p.environment())
	return &programError{fmt.Errorf("run %s: %w", p.path, err)}
}

// run runs the program as a child, and ends as it ends.
func (p *program) run() error {
	runtime.LockOSThread() // whose end would be the program's: see start
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn...)
	defer signal.Stop(signals)
	child, err := p.start()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	passing := make(chan struct{})
	go func() {
		defer close(passing)
		passOn(child, signals, done)
	}()
	status, err := await(child)
	close(done)
	<-passing
	if err != nil {
		return fmt.Errorf("wait for %s: %w", p.path, err)
	}
	return ending(status)
}

// await waits for the end of the program. When it stops for its terminal, as by Ctrl-Z, this command does too, so that
// a shell sees a job that has stopped; the signal to go on is passed on like others.
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

// start starts the program, or, for --sysfs, this command again in namespaces of its own, where it becomes the program.
// If this command is killed, the kernel kills the program too.
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
	return s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGTSTP || s == unix.SIGWINCH
}

// inForeground says whether the command is of those that its terminal's signals go to.
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

// openTerminal opens the terminal that controls the command, if one does.
func openTerminal() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY, 0) }

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
