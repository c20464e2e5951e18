// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"testing"

	"github.com/roced/roced/internal/journal"
	"github.com/roced/roced/internal/lab/labtest"
	"golang.org/x/sys/unix"
)

func enter(t *testing.T, path string) *Namespace {
	t.Helper()
	s, err := Enter(path)
	check(t, err)
	t.Cleanup(s.Close)
	return s
}

// udpSocket opens a socket in the calling thread's namespace.
func udpSocket(t *testing.T) int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// TestNamespaceStaysEntered: Do runs functions inside the namespace, and Check rejects a socket of another namespace.
func TestNamespaceStaysEntered(t *testing.T) {
	ns := labtest.New(t, "host")
	s := enter(t, ns.Path())
	here, err := journal.ThisNamespace()
	check(t, err)
	if s.ID() == here {
		t.Error("the namespace is that of the caller")
	}
	for range 3 {
		check(t, s.Do(func() error { return s.Check(udpSocket(t)) }))
	}
	if err := s.Check(udpSocket(t)); !errors.Is(err, unix.EXDEV) {
		t.Errorf("a socket of the caller's namespace: %v", err)
	}
	if err := s.Do(func() error { return unix.EPIPE }); err != unix.EPIPE {
		t.Errorf("got %v, want the returned error", err)
	}
}

// TestNamespaceOfTheCaller: an empty path means the namespace of the thread that calls Enter.
func TestNamespaceOfTheCaller(t *testing.T) {
	ns := labtest.New(t, "host")
	var inside *Namespace
	check(t, ns.Do(func() (err error) { inside, err = Enter(""); return err }))
	if named := enter(t, ns.Path()); inside.ID() != named.ID() {
		t.Errorf("got %v from the thread, %v from the path", inside.ID(), named.ID())
	}
	check(t, ns.Do(func() error { return inside.Do(func() error { return inside.Check(udpSocket(t)) }) }))
}

func TestEnterErrors(t *testing.T) {
	for path, want := range map[string]error{"/run/netns/there is none": unix.ENOENT, "/proc/self/ns/uts": unix.EINVAL} {
		if s, err := Enter(path); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", path, s, err)
		}
	}
}
