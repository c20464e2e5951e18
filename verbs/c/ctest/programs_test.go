// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/internal/waittest"
)

// TestC runs the programs of tests/, each against a service of its own.
func TestC(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"traffic", "extended", "threads", "fork", "events", "reopen", "cancel", "order", "descriptors", "resize", "sharedmemory", "readonly", "errors"} {
		t.Run(name, func(t *testing.T) { serve(t).program(t, name) })
	}
}

// TestSegments registers the first System V segments of an IPC namespace. Their files are root's alone.
func TestSegments(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	c := newCMRig(t).command(t, glibc().program(t, "tests/sharedmemory"), "segments")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWIPC}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestExecUnderFileSizeLimit: memory of a program is a sparse file, which is larger than the limit that the command has. The
// program has the same limit.
func TestExecUnderFileSizeLimit(t *testing.T) {
	t.Parallel()
	const gibibyte = "2097152" // in units of sh
	lib := build(t)
	c := needs.Command(t, "sh", "-c", `ulimit -S -f `+gibibyte+`; exec "$0" exec --network loopback --libraries "$1" -- sh -c '"$0" && ulimit -S -f' "$2"`,
		filepath.Join(lib, "roced"), lib, glibc().program(t, "tests/traffic"))
	if out, err := c.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != gibibyte {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestServiceKilled: a program whose service is killed goes on, finds its requests flushed, and can end in order.
func TestServiceKilled(t *testing.T) {
	s := serve(t)
	c := s.command(t, glibc().program(t, "tests/gone"))
	var failures bytes.Buffer
	c.Stderr = &failures
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(out).Scan() { // it has posted
		t.Errorf("the program is not ready")
	}
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &failures)
	}
}

// TestNoService: without a service there are no devices, and no message.
func TestNoService(t *testing.T) {
	s := &service{lib: build(t), socket: "/nonexistent/roced.sock"}
	out := s.output(t, "ibv_devices")
	if len(strings.Split(strings.TrimSpace(out), "\n")) != 2 {
		t.Errorf("ibv_devices without a service: got:\n%s", out)
	}
}

// TestSocketOfAnotherUser: anyone can make the folder for temporary files first, and is not trusted.
func TestSocketOfAnotherUser(t *testing.T) {
	needs.Root(t)
	if _, err := os.Stat("/run/roced/roced.sock"); err == nil {
		needs.Skip(t, "a host without a service of its own: systemctl stop roced")
	}
	s := serve(t) // run by user nobody
	dir := t.TempDir()
	own := filepath.Join(dir, "roced-0")
	if err := errors.Join(os.Mkdir(own, 0o700), os.Symlink(s.socket, filepath.Join(own, "roced.sock"))); err != nil {
		t.Fatal(err)
	}
	c := s.command(t, "ibv_devices")
	c.SysProcAttr = nil
	c.Env = append(c.Env, "TMPDIR="+dir, "ROCED_SOCKET=", "XDG_RUNTIME_DIR=")
	if out, err := c.CombinedOutput(); err != nil || strings.Contains(string(out), "loop") {
		t.Errorf("%v: ibv_devices of root found the service of user nobody:\n%s", err, out)
	}
}

// TestDevinfo: the tool's description of the device.
func TestDevinfo(t *testing.T) {
	s := serve(t)
	out := s.output(t, "ibv_devinfo", "-v")
	for _, want := range []string{"hca_id:\tloop", "PORT_ACTIVE (4)", "link_layer:\t\tEthernet", "RoCE v2", "phys_port_cnt:\t\t\t1", "MEM_MGT_EXTENSIONS"} {
		if !strings.Contains(out, want) {
			t.Errorf("ibv_devinfo -v does not say %q:\n%s", want, out)
		}
	}
	if list := s.output(t, "ibv_devices"); !strings.Contains(list, "loop") {
		t.Errorf("ibv_devices: got:\n%s", list)
	}
}

// pingpongs are ibverbs-utils' programs with their options.
var pingpongs = []string{
	"ibv_rc_pingpong", "ibv_rc_pingpong -e", "ibv_rc_pingpong -c -s 65536", "ibv_rc_pingpong -N -n 100", "ibv_rc_pingpong -t",
	"ibv_uc_pingpong", "ibv_uc_pingpong -e -c", "ibv_ud_pingpong", "ibv_ud_pingpong -e -c", "ibv_srq_pingpong", "ibv_srq_pingpong -e -c",
	"ibv_xsrq_pingpong", "ibv_xsrq_pingpong -e",
}

// TestPingpongs: two processes of one service.
func TestPingpongs(t *testing.T) {
	s := serve(t)
	for _, line := range pingpongs {
		t.Run(line, func(t *testing.T) {
			s.pair(t, append(strings.Fields(line), "-g", "0"), "127.0.0.1")
		})
	}
}

// perftests are programs of perftest with their options.
var perftests = []string{
	"ib_send_bw -n 200", "ib_send_bw -n 200 -b", "ib_send_bw -n 200 -e", "ib_send_bw -n 5 -a", "ib_send_bw -n 200 -q 4", "ib_send_bw -n 200 -c UD -s 1024",
	"ib_send_bw -n 200 -c UC", "ib_send_bw -n 200 -r 64 -I 64 -s 64", "ib_send_bw -n 200 --use-srq", "ib_send_lat -n 200", "ib_send_lat -n 200 -c UD", "ib_send_lat -n 200 -I 32",
	"ib_write_bw -n 200", "ib_write_bw -n 5 -a", "ib_write_bw -n 200 -b -q 2", "ib_write_bw -n 200 -c UC", "ib_write_lat -n 200", "ib_write_lat -n 200 -c UC",
	"ib_read_bw -n 200", "ib_read_bw -n 5 -a", "ib_read_bw -n 200 -b", "ib_read_lat -n 200",
	"ib_atomic_bw -n 200", "ib_atomic_bw -n 200 -A CMP_AND_SWAP", "ib_atomic_lat -n 200", "ib_send_bw -n 200 -c XRC", "ib_write_bw -n 200 -c XRC",
}

// TestPerftest: two processes of one service. perftest's own librdmacm is Debian's, and is not asked.
func TestPerftest(t *testing.T) {
	s := serve(t)
	quick := "LD_PRELOAD=" + glibc().alone(t, "tests/quickclock.so")
	for _, line := range perftests {
		// -F: no result is refused since the processor's clock is not steady, as on machines that others use too.
		t.Run(line, func(t *testing.T) { s.pair(t, strings.Fields(line+" -F"), "127.0.0.1", quick) })
	}
}

// pair runs a program as server, and again as client with the server's address, until the client has found it.
func (s *service) pair(t *testing.T, line []string, address string, environment ...string) {
	t.Helper()
	line = append(line, "-p", freePort(t))
	var said bytes.Buffer
	server := s.command(t, line[0], line[1:]...)
	server.Env = append(server.Env, environment...)
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	awaitListener(t, server.Process.Pid, ended, &said)
	client := s.command(t, line[0], append(line[1:], address)...)
	client.Env = append(client.Env, environment...)
	out, err := client.CombinedOutput()
	if err != nil {
		_ = server.Process.Kill()
		t.Fatalf("client: %v\n%s\nserver: %v\n%s", err, out, <-ended, &said)
	}
	if err := <-ended; err != nil {
		t.Errorf("server: %v\n%s", err, &said)
	}
}

// awaitListener waits until a process listens for TCP connections.
func awaitListener(t *testing.T, pid int, ended chan error, said *bytes.Buffer) {
	t.Helper()
	for deadline := time.Now().Add(waittest.Limit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if listens(pid) {
			return
		}
		select {
		case err := <-ended:
			t.Fatalf("server: %v\n%s", err, said)
		default:
		}
	}
	t.Fatal("the server does not listen")
}

// listens reports whether the process has a listening TCP socket.
func listens(pid int) bool {
	own := map[string]bool{}
	descriptors, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, d := range descriptors {
		if to, err := os.Readlink(d); err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	const state, inode, listening = 3, 9, "0A"
	for _, table := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		for _, line := range strings.Split(string(text), "\n") {
			if f := strings.Fields(line); len(f) > inode && f[state] == listening && own[f[inode]] {
				return true
			}
		}
	}
	return false
}

// freePort returns a port without a listener.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
