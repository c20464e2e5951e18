// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/hack/interop/vm"
	"github.com/roced/roced/verbs/hca"
)

// buildRoced builds the binary in a temporary folder.
func buildRoced(ctx context.Context) (path string, err error) {
	dir, err := os.MkdirTemp("", "roced-binary-")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "roced")
	if err := vm.Build(ctx, path, "cmd/roced"); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return path, nil
}

// onHost starts a roced command on the host's interface: with its own card or, with several workers, as a client of a
// service. It is interrupted when ctx is done.
func (l *testbed) onHost(ctx context.Context, command string, arguments ...any) *job.Job {
	if l.workers > 1 {
		return job.Start(func(out io.Writer) error { return l.throughService(ctx, out, command, words(arguments)) })
	}
	args := []string{command, "-d", "eth0", "--network", string(l.network)}
	if l.network != hca.NetworkUDP {
		args = append(args, "--tx", string(l.send))
	}
	if l.machine != nil {
		args = append(args, "--zerocopy")
	}
	return l.start(ctx, append(args, words(arguments)...)...)
}

// start starts roced on the host.
func (l *testbed) start(ctx context.Context, args ...string) *job.Job {
	if l.machine != nil {
		return l.startInMachine(ctx, args)
	}
	cmd := exec.CommandContext(ctx, l.roced, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 5 * time.Second
	return job.Program(cmd, l.host.Do)
}

// throughService runs a command as the only client of a service with several workers.
func (l *testbed) throughService(ctx context.Context, out io.Writer, command string, arguments []string) error {
	serving, end := context.WithCancel(ctx)
	defer end()
	socket := filepath.Join(filepath.Dir(l.roced), "roced.sock")
	service := l.start(serving, "run", "-d", "eth0", "--network", string(l.network), "--socket", socket, "--workers", fmt.Sprint(l.workers), "--log-level", "info")
	said, err := service.Saying(ctx, "msg=ready")
	if err == nil {
		said, err = l.start(ctx, append([]string{command, "-d", "eth0", "--socket", socket}, arguments...)...).Wait()
	}
	end()
	served, failed := service.Wait()
	if errors.Is(failed, context.Canceled) { // interrupted by end
		failed = nil
	}
	if err = errors.Join(err, failed); err != nil {
		said += "\nthe service said:\n" + served
	}
	_, writeErr := io.WriteString(out, said)
	return errors.Join(err, writeErr)
}

func words(arguments []any) []string {
	var list []string
	for _, a := range arguments {
		list = append(list, fmt.Sprint(a))
	}
	return list
}

// both is job.Both of roced and the peer.
func both(host, peer *job.Job) (hostSaid, peerSaid string, err error) {
	return job.Both("roced", host, "peer", peer)
}

// tail returns the last lines of a text, for errors.
func tail(text string) string {
	const lines = 12
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
