// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/internal/waittest"
)

// every is a program that uses all kinds of objects, and what kills it or its service at one of its messages.
type every struct {
	program, preload string
	messages         int // that it sends to the service
}

func newEvery(t *testing.T, s *service) *every {
	t.Helper()
	needs.Tools(t, "/usr/include/rdma/rdma_verbs.h")
	e := &every{program: glibc().program(t, "cm/tests/every"), preload: glibc().alone(t, "tests/killat.so")}
	out, err := e.command(t, s, "KILL_AT=0").CombinedOutput()
	if err != nil {
		t.Fatalf("without a death: %v\n%s", err, out)
	}
	if _, err := fmt.Sscanf(string(out), "messages: %d", &e.messages); err != nil || e.messages < 100 {
		t.Fatalf("%d messages: %v\n%s", e.messages, err, out)
	}
	return e
}

func (e *every) command(t *testing.T, s *service, environment ...string) *exec.Cmd {
	t.Helper()
	c := s.command(t, e.program, "dies")
	c.Env = append(append(c.Env, "LD_PRELOAD="+e.preload), environment...)
	return c
}

// kept contains a service's resources for its programs.
type kept struct {
	clients               int
	descriptors, mappings int
	objects               string
}

func (s *service) kept(t *testing.T) (k kept) {
	t.Helper()
	show := func(what string) string {
		out, err := exec.Command(filepath.Join(s.lib, "roced"), "show", what, "--json", "--service", s.socket).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	proc := fmt.Sprintf("/proc/%d/", s.process.Process.Pid)
	k.clients = strings.Count(show("client"), `"pid"`)
	for _, what := range []string{"pd", "cq", "qp", "srq", "mr", "ah", "mcast", "cm"} {
		k.objects += strings.Trim(show(what), "[]\n ")
	}
	descriptors, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile(proc + "maps")
	if err != nil {
		t.Fatal(err)
	}
	k.descriptors, k.mappings = len(descriptors), bytes.Count(maps, []byte("memfd:"))
	return k
}

// deaths returns the messages at which a test kills: one in ten, or in ROCED_KILLED, with a random start.
func (e *every) deaths(t *testing.T) (at []int) {
	t.Helper()
	step := max(1, waittest.Wanted(t, "ROCED_KILLED", 10))
	first := 1 + rand.IntN(step)
	t.Logf("of %d messages every %d, from %d on", e.messages, step, first)
	for m := first; m <= e.messages; m += step {
		at = append(at, m)
	}
	return at
}

// TestProgramKilledAtEachCall: a program dies at each of its commands, before and after it is given. Nothing is left.
func TestProgramKilledAtEachCall(t *testing.T) {
	t.Parallel()
	s := serve(t)
	e := newEvery(t, s)
	want := s.kept(t)
	deaths := e.deaths(t)
	for i, at := range deaths {
		for _, when := range []string{"before", "after"} {
			c := e.command(t, s, "KILL_AT="+strconv.Itoa(at), "KILL_WHO=self", "KILL_WHEN="+when)
			out, err := c.CombinedOutput()
			if status, is := c.ProcessState.Sys().(syscall.WaitStatus); !is || status.Signal() != syscall.SIGKILL {
				t.Fatalf("%s message %d: %v\n%s", when, at, err, out)
			}
		}
		if i%10 != 0 && i != len(deaths)-1 {
			continue // leftovers are kept
		}
		for deadline := time.Now().Add(waittest.Limit); s.kept(t) != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("after message %d the service has %+v, and had %+v", at, s.kept(t), want)
			}
		}
	}
}

// TestServiceKilledAtEachCall: a service dies or ends at each command of a program, which neither hangs nor fails.
func TestServiceKilledAtEachCall(t *testing.T) {
	t.Parallel()
	first := serve(t)
	e := newEvery(t, first)
	for i, at := range e.deaths(t) {
		when, by := []string{"before", "after"}[i%2], []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[i/2%2]
		s := serve(t)
		c := e.command(t, s, "KILL_AT="+strconv.Itoa(at), "KILL_WHO=service", "KILL_WHEN="+when, fmt.Sprintf("KILL_BY=%d", by))
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v %s message %d: %v\n%s", by, when, at, err, out)
		}
	}
}
