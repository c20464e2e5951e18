// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

// built contains the libraries and roced, built once for all tests.
var built struct {
	sync.Once
	dir string
	err error
}

// tested is a file that tests read, and that is written when they have ended, so that go test runs them again: it
// does not cache results of tests that have read a recently written file. It does not track files read by make and
// go build.
const tested = "../build/tested"

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.WriteFile(tested, []byte("tested\n"), 0o644)
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// compiler is what compiles the libraries and the programs of the tests.
var compiler = []string{"gcc", "make", "/usr/include/stdio.h"}

// build gives the folder of the libraries, and roced beside them.
func build(t *testing.T) string {
	t.Helper()
	needs.Tools(t, compiler...)
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "roced-ctest-"); built.err != nil {
			return
		}
		built.err = errors.Join(os.Chmod(built.dir, 0o755),
			glibc().libraries(built.dir),
			made("go", "build", "-ldflags=-w", "-o", filepath.Join(built.dir, "roced"), "../../../cmd/roced"))
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

// kind describes the target of libraries and programs.
type kind struct {
	name      string
	variables []string // make's
}

// glibc is the target of this machine's programs. ROCED_SANITIZE is the argument of -fsanitize, for the libraries
// and the programs of the tests.
func glibc() kind {
	flags := strings.Join(sanitize(), " ")
	return kind{"glibc" + os.Getenv("ROCED_SANITIZE"), []string{"CFLAGS=-O2 -g " + flags, "SANITIZE=" + flags}}
}

// patient is glibc's, whose calls of rsockets sleep until they are woken.
func patient() kind {
	k := glibc()
	return kind{k.name + "patient", append(k.variables, "CPPFLAGS=-DRS_WAKE_MS=3600000")}
}

var musl = kind{"musl", []string{"MUSL=1"}}

func sanitize() []string {
	kind := os.Getenv("ROCED_SANITIZE")
	if kind == "" {
		return nil
	}
	return []string{"-fsanitize=" + kind, "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"}
}

// libraries makes the libraries in a folder.
func (k kind) libraries(to string) error { return k.keep(to, "all", "*.so*") }

// program builds a program of tests/ or cm/tests/ against Debian's headers, executable by user nobody.
func (k kind) program(t *testing.T, name string) (program string) {
	t.Helper()
	needs.Tools(t, "/usr/include/infiniband/verbs.h")
	return k.alone(t, name)
}

// alone makes what needs no header of another package.
func (k kind) alone(t *testing.T, name string) (program string) {
	t.Helper()
	dir := t.TempDir()
	program = filepath.Join(dir, filepath.Base(name))
	if err := errors.Join(k.keep(dir, name, name), readable(program)); err != nil {
		t.Fatal(err)
	}
	return program
}

// keep builds a target of programs.mk, and copies its files to a folder. Compiled files stay in verbs/c/build for
// the next time: make compiles changed ones.
func (k kind) keep(to, target, files string) error {
	_, _ = os.ReadFile(tested)
	kept, err := filepath.Abs("../build/ctest-" + k.name)
	if err == nil {
		err = os.MkdirAll(kept, 0o755)
	}
	if err != nil {
		return err
	}
	lock, err := os.Open(kept)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil { // other tests, and another run of them
		return err
	}
	if target != "all" {
		target = filepath.Join(kept, target)
	}
	if err := made("make", append([]string{"-s", "-j2", "-C", "..", "-f", "ctest/programs.mk", "RECIPE=ctest/rig_test.go", "OUT=" + kept, target}, k.variables...)...); err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(kept, files))
	if err != nil {
		return err
	}
	return made("cp", append(append([]string{"-P"}, paths...), to)...)
}

func made(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// service is a service on an in-memory network, unprivileged if possible.
type service struct {
	lib, socket string
	process     *exec.Cmd
	log         bytes.Buffer
	ended       chan struct{}
}

// nobody is the uid of services and programs, if the test can choose it.
const nobody = 65534

func asNobody(c *exec.Cmd) {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

// serve starts a service, which ends with the test.
func serve(t *testing.T, args ...string) *service {
	t.Helper()
	lib := build(t)
	dir, err := os.MkdirTemp("", "roced-service-")
	if err == nil && os.Getuid() == 0 {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &service{lib: lib, socket: filepath.Join(dir, "roced.sock"), ended: make(chan struct{})}
	s.process = exec.Command(filepath.Join(lib, "roced"), append([]string{"run", "--loopback", "--socket", s.socket}, args...)...)
	s.process.Stderr = &s.log
	asNobody(s.process)
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.process.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.process.Process.Signal(os.Interrupt)
		<-s.ended
		if t.Failed() {
			t.Logf("the service:\n%s", &s.log)
		}
	})
	for deadline := time.Now().Add(waittest.Limit); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(s.socket); err == nil {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatal("the service does not listen")
		}
	}
}

// programTime is the time limit of a program, which ends it if it hangs.
var programTime = waittest.Long(2 * time.Minute)

// command is a program that finds the libraries and the service. It ends with the test.
func (s *service) command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	if !filepath.IsAbs(name) {
		needs.Tools(t, name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), programTime)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+s.lib, "ROCED_SOCKET="+s.socket)
	asNobody(c)
	return c
}

// output runs a program to its end, which is to be a success.
func (s *service) output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := s.command(t, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// program compiles a program of tests/ and runs it to its end.
func (s *service) program(t *testing.T, name string, args ...string) string {
	t.Helper()
	return s.output(t, glibc().program(t, "tests/"+name), args...)
}

// readable makes a program in a folder of the test executable by user nobody.
func readable(program string) error {
	for dir := filepath.Dir(program); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// printed returns the output of a program that needs no service.
func printed(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
