package main

import (
	"context"
	"errors"
	"fmt"
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

// buildRoced makes the binary, in a folder of its own.
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

// onHost starts one of roced's commands on the host's interface, as a user would.
// It is interrupted when ctx is done.
func (l *testbed) onHost(ctx context.Context, command string, arguments ...any) *job.Job {
	args := []string{command, "-d", "eth0", "--netns", l.host.Name(), "--network", string(l.network)}
	if l.network != hca.NetworkUDP {
		args = append(args, "--tx", string(l.send))
	}
	args = append(args, words(arguments)...)
	cmd := exec.CommandContext(ctx, l.roced, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 5 * time.Second
	return job.Program(cmd, func(start func() error) error { return start() })
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

// tail is the end of a text, for errors.
func tail(text string) string {
	const lines = 12
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
