// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/internal/waittest"
)

// cmRig has the libraries, built for a test, and a service on an in-memory network.
type cmRig struct {
	libraries, roced, socket string
	service                  *os.Process
}

// newCMRig starts a service, on an in-memory network unless options select another.
func newCMRig(t *testing.T, options ...string) *cmRig {
	t.Helper()
	dir := build(t)
	r := &cmRig{libraries: dir, roced: filepath.Join(dir, "roced"), socket: filepath.Join(t.TempDir(), "roced.sock")}
	if len(options) == 0 {
		options = []string{"--loopback"}
	}
	service := exec.Command(r.roced, append([]string{"run", "--socket", r.socket}, options...)...)
	var log bytes.Buffer
	service.Stderr = &log
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	r.service = service.Process
	t.Cleanup(func() {
		_ = service.Process.Signal(os.Interrupt)
		if err := service.Wait(); t.Failed() {
			t.Logf("the service: %v\n%s", err, &log)
		}
	})
	for {
		if _, err := os.Stat(r.socket); err == nil {
			return r
		}
		time.Sleep(10 * time.Millisecond)
		if t.Context().Err() != nil {
			t.Fatal("the service does not listen")
		}
	}
}

// command is a program that finds the libraries and the service. It ends with the test.
func (r *cmRig) command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programTime)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+r.libraries, "ROCED_SOCKET="+r.socket)
	return c
}

// patient is the same with libraries whose sleeping rsockets calls do not poll periodically.
func (r *cmRig) patient(t *testing.T) *cmRig {
	p := *r
	p.libraries = t.TempDir()
	if err := patient().libraries(p.libraries); err != nil {
		t.Fatal(err)
	}
	return &p
}

// run compiles and runs a program of cm/tests.
func (r *cmRig) run(t *testing.T, name string, args ...string) {
	if out, err := r.command(t, glibc().program(t, "cm/tests/"+name), args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCM runs the programs of cm/tests, and those of Debian's rdmacm-utils as they are.
func TestCM(t *testing.T) {
	t.Parallel()
	needs.Tools(t, append(compiler, "/usr/include/rdma/rdma_verbs.h")...)
	r := newCMRig(t)
	for _, name := range []string{"synchronous", "asynchronous", "streams", "sharing", "backlog", "comparison"} {
		t.Run(name, func(t *testing.T) { r.run(t, name) })
	}
	if os.Getenv("ROCED_SANITIZE") != "thread" { // TSan's own locks stay taken in the child of a process with threads
		t.Run("forking", func(t *testing.T) { r.run(t, "forking") })
	}
	t.Run("errors", func(t *testing.T) { serve(t).output(t, glibc().program(t, "cm/tests/errors")) }) // of an ordinary user
	pid := strconv.Itoa(r.service.Pid)
	t.Run("waking", func(t *testing.T) { r.patient(t).run(t, "waking", pid) }) // it stops the service for a moment
	t.Run("datagrams", func(t *testing.T) { r.run(t, "datagrams", "127.0.0.1") })
	for _, row := range cmPairs {
		if sanitize() == nil { // programs that were built without it cannot load them
			t.Run(row.name, func(t *testing.T) { r.pair(t, row) })
		}
	}
	t.Run("waiting", func(t *testing.T) { r.run(t, "waiting", pid) }) // it ends the service
}

// TestStoppedWhileWaiting has memory stop threads by a signal while they wait for events of several devices: rping's
// rdma_get_cm_event, which must not return EINTR.
func TestStoppedWhileWaiting(t *testing.T) {
	t.Parallel()
	needs.Tools(t, append(compiler, "rping")...)
	if sanitize() != nil {
		needs.Skip(t, "libraries without a sanitizer: unset ROCED_SANITIZE")
	}
	r := newCMRig(t, "--loopback", "--host", "server=10.77.5.1", "--host", "client=10.77.5.2")
	rping := func(side string) *exec.Cmd {
		c := r.command(t, "rping", side, "-a", "10.77.5.1", "-C", "3")
		c.Env = append(c.Env, "ROCED_MEMORY_GUARD=signal")
		return c
	}
	server := rping("-s")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	r.await(t, true)
	out, err := rping("-c").CombinedOutput()
	if err != nil {
		_ = server.Process.Kill()
		t.Errorf("%v\n%s", err, out)
	}
	if err := server.Wait(); err != nil && !t.Failed() {
		t.Errorf("the server: %v", err)
	}
}

// cmPair is a server and a client of rdmacm-utils.
type cmPair struct {
	name           string
	server, client []string
}

// cmServer is the first program's address: each has the lowest one that is free.
const cmServer = "10.88.0.1"

var cmPairs = []cmPair{
	{"rping", []string{"rping", "-s", "-C", "10", "-V"}, []string{"rping", "-c", "-a", cmServer, "-C", "10", "-V"}},
	{"ucmatose", []string{"ucmatose"}, []string{"ucmatose", "-s", cmServer}},
	{"ucmatose migrates", []string{"ucmatose", "-m"}, []string{"ucmatose", "-m", "-s", cmServer}},
	{"udaddy", []string{"udaddy"}, []string{"udaddy", "-s", cmServer}},
	{"rdma_server", []string{"rdma_server"}, []string{"rdma_client", "-s", cmServer}},
	{"rdma_xserver", []string{"rdma_xserver"}, []string{"rdma_xclient", "-s", cmServer}},
	{"rstream", []string{"rstream", "-S", "4096", "-C", "500"}, []string{"rstream", "-s", cmServer, "-S", "4096", "-C", "500"}},
	{"rstream resolves", []string{"rstream", "-T", "r", "-S", "64", "-C", "100"}, []string{"rstream", "-s", cmServer, "-T", "r", "-S", "64", "-C", "100"}},
	{"rstream does not wait", []string{"rstream", "-T", "n", "-S", "64", "-C", "100"}, []string{"rstream", "-s", cmServer, "-T", "n", "-S", "64", "-C", "100"}},
	{"riostream", []string{"riostream", "-S", "100000", "-C", "50"}, []string{"riostream", "-s", cmServer, "-S", "100000", "-C", "50"}},
	{"mckey", []string{"mckey", "-m", "239.7.1.74", "-b", cmServer}, []string{"mckey", "-m", "239.7.1.74", "-b", "10.88.0.2", "-s"}},
}

// pair runs a server and a client to their ends. The client begins when the server is a host, and waits for it.
func (r *cmRig) pair(t *testing.T, row cmPair) {
	needs.Tools(t, row.server[0], row.client[0])
	r.await(t, false) // the programs before have gone, and their addresses are free
	var said bytes.Buffer
	server := r.command(t, row.server[0], row.server[1:]...)
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	r.await(t, true)
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	for first := true; ; first = false {
		out, err := r.command(t, row.client[0], row.client[1:]...).CombinedOutput()
		if err != nil {
			_ = server.Process.Kill()
			if result := <-ended; first || result != nil { // else the server had ended well when the client was started again
				t.Errorf("client: %v\n%s\nserver: %v\n%s", err, out, result, &said)
			}
			return
		}
		select {
		case err = <-ended:
		case <-time.After(row.again()):
			r.awaitAlone(t)
			select {
			case err = <-ended: // meanwhile
			default:
				continue
			}
		}
		if err != nil {
			t.Errorf("server: %v\n%s", err, &said)
		}
		return
	}
}

// again is when to start the client once more if the server goes on: a group's sender does not know whether somebody has
// joined yet.
func (row *cmPair) again() time.Duration {
	if row.server[0] == "mckey" {
		return 2 * time.Second
	}
	return time.Hour // the program's own end comes before
}

// awaitAlone waits until one program is left, and the others' addresses are free.
func (r *cmRig) awaitAlone(t *testing.T) {
	t.Helper()
	for start := time.Now(); strings.Count(r.show(t, "client"), `"ifname":"loop`) > 1; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > waittest.Limit {
			t.Fatal("a program does not go")
		}
	}
}

// await waits until a server listens, or has joined a group; or until there are no programs, and all addresses are free.
func (r *cmRig) await(t *testing.T, there bool) {
	t.Helper()
	for start := time.Now(); time.Since(start) < waittest.Limit; time.Sleep(10 * time.Millisecond) {
		if there {
			if ids := r.show(t, "cm"); strings.Contains(ids, `"LISTEN"`) || strings.Contains(ids, `"groups":1`) {
				return
			}
		} else if !strings.Contains(r.show(t, "client"), `"ifname":"loop`) {
			return
		}
	}
	t.Fatal("no server listens, or programs do not go")
}

// show returns the service's objects, in JSON.
func (r *cmRig) show(t *testing.T, what string) string {
	t.Helper()
	out, err := exec.Command(r.roced, "show", what, "--json", "--socket", r.socket).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
