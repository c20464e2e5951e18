// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/roced/roced/deploy/kubernetes/internal/service"
	"github.com/roced/roced/internal/waittest"
)

// Main implements TestMain for tests that run programs: it builds roced and the given commands of this module, and
// stores their folder in programs.
func Main(m *testing.M, programs *string, commands ...string) {
	code := 1
	folder, err := os.MkdirTemp("", "roced-kubernetes-")
	if err == nil {
		err = build(folder, commands)
	}
	if err == nil {
		*programs = folder
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

func build(folder string, commands []string) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("folder of the module: %w", err)
	}
	here := string(root[:len(root)-1])
	if err := compile(filepath.Join(here, "../.."), folder, "./cmd/roced"); err != nil {
		return err
	}
	for _, command := range commands {
		if err := compile(here, folder, "./cmd/"+command); err != nil {
			return err
		}
	}
	return nil
}

func compile(module, folder, what string) error {
	cmd := exec.Command("go", "build", "-o", folder+"/", what)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", what, err, out)
	}
	return nil
}

// Service is a service with an in-memory network, in a temporary folder.
type Service struct {
	service.Service
	t       *testing.T
	program string
	process *Process
}

// Start starts a service. It ends with the test.
func Start(t *testing.T, program string) *Service {
	t.Helper()
	s := &Service{service.Service{Path: filepath.Join(t.TempDir(), "roced.sock")}, t, program, nil}
	s.Restart()
	return s
}

// Restart starts the service again, and waits until it responds.
func (s *Service) Restart() {
	s.t.Helper()
	s.process = Run(s.t, s.program, "run", "--loopback", "--socket", s.Path)
	waittest.Eventually(s.t, "the service to respond", func() bool { return s.Answers(s.Path) })
}

// Kill kills the service.
func (s *Service) Kill() { s.process.Kill() }

// Answers reports whether a service responds at a socket.
func (s *Service) Answers(path string) bool {
	devices, err := service.Service{Path: path}.Devices(context.Background())
	return err == nil && len(devices) > 0
}

// Process is a program that a test runs.
type Process struct{ cmd *exec.Cmd }

// Run starts a program. It is killed at the end of the test.
func Run(t *testing.T, program string, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // killed tests leave no processes
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{cmd}
	t.Cleanup(p.Kill)
	return p
}

// Kill kills the process, unless it has ended.
func (p *Process) Kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}
