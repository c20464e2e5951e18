// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// line is a line of a command's output and the time of its end since the command started.
type line struct {
	at   time.Duration
	text string
}

// record runs a command of the shell in a pseudoterminal and returns its output, which it also prints.
func record(ctx context.Context, command string) ([]line, error) {
	controller, terminal, err := openTerminal()
	if err != nil {
		return nil, fmt.Errorf("open a pseudoterminal: %w", err)
	}
	defer controller.Close()
	shell := exec.CommandContext(ctx, "sh", "-c", command)
	shell.Stdin, shell.Stdout, shell.Stderr = terminal, terminal, terminal
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	shell.Cancel = func() error { return unix.Kill(-shell.Process.Pid, unix.SIGINT) } // as Ctrl-C in this terminal does
	err = shell.Start()
	terminal.Close()
	if err != nil {
		return nil, err
	}
	lines, readErr := readLines(io.TeeReader(controller, os.Stdout), time.Now())
	if err := errors.Join(readErr, shell.Wait()); err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return lines, nil
}

// openTerminal returns both ends of a pseudoterminal of the drawing's size.
func openTerminal() (controller, terminal *os.File, err error) {
	controller, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(controller.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: screenRows, Col: screenColumns})
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		controller.Close()
		return nil, nil, err
	}
	return controller, terminal, nil
}

// readLines reads until the terminal is closed on its other end, which is EIO on Linux.
func readLines(r io.Reader, start time.Time) (lines []line, err error) {
	for buffered := bufio.NewReader(r); ; {
		text, err := buffered.ReadString('\n')
		if text != "" {
			lines = append(lines, line{time.Since(start), text})
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, unix.EIO):
			return lines, nil
		case err != nil:
			return nil, err
		}
	}
}
