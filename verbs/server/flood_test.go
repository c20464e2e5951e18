// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"golang.org/x/sys/unix"
)

// listenShort listens with room for one connection that waits to be accepted.
func listenShort(t *testing.T) (listener net.Listener, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	check(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	check(t, unix.Listen(fd, 0))
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	listener, err = net.FileListener(file)
	check(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener, path
}

// TestDialWaits: while others fill the queue of those who wait to be accepted, and be it at once again.
func TestDialWaits(t *testing.T) {
	listener, path := listenShort(t)
	filler, err := net.Dial("unixpacket", path)
	check(t, err)
	defer filler.Close()
	if _, err := net.Dial("unixpacket", path); err == nil {
		t.Fatal("the queue is not full")
	}
	dialled := make(chan error, 1)
	go func() {
		c, err := client.DialContext(guard(t), path, "a")
		if err == nil {
			err = c.Close()
		}
		dialled <- err
	}()
	select {
	case err := <-dialled:
		t.Fatal("it does not wait:", err)
	case <-time.After(50 * time.Millisecond): // more than an error at once takes
	}
	r := newRig(t, anyone)
	go r.a.Serve(listener)
	check(t, <-dialled)
}

// asUser runs do as another user, in a thread of its own, which ends with it. Its error is the test's.
func asUser(t *testing.T, uid int, do func() error) {
	t.Helper()
	needs.Root(t)
	over := make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread() // and is never unlocked, so that the thread ends
		if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); err != 0 {
			t.Error(err)
			return
		}
		if err := do(); err != nil {
			t.Error(err)
		}
	}()
	<-over
}

// open lets every user reach the daemon.
func (d *daemon) open(t *testing.T) {
	t.Helper()
	check(t, os.Chmod(filepath.Dir(d.path), 0o755))
	check(t, os.Chmod(d.path, 0o666))
}

// TestDialAmongOthers: programs of another user, which connect and close on and on, do not keep others out. What
// they connect too often is closed unread.
func TestDialAmongOthers(t *testing.T) {
	t.Parallel()
	needs.Root(t) // here, since asUser is called on other goroutines
	r := newRig(t, anyone)
	r.a.open(t)
	var others sync.WaitGroup
	over := make(chan struct{})
	for range 2 {
		others.Go(func() { asUser(t, 4711, func() error { return connectOnAndOn(r.a.path, over) }) })
	}
	defer others.Wait()
	defer close(over)
	eventually(t, "some are closed unread", func() bool { return r.a.Refused() > 0 })
	for range often(20) {
		c, err := client.Dial(r.a.path, "")
		check(t, err)
		check(t, c.Close())
	}
}

func connectOnAndOn(path string, over <-chan struct{}) error {
	for {
		select {
		case <-over:
			return nil
		default:
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		_ = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		_ = unix.Close(fd)
	}
}

// TestConnectingTooOften: the client says what it may be, and the log whose it is, once.
func TestConnectingTooOften(t *testing.T) {
	var log locked
	c := anyone
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	r := newRig(t, c)
	eventually(t, "it is refused", func() bool {
		for before := r.a.Refused(); r.a.Refused() == before; {
			if conn, err := net.Dial("unixpacket", r.a.path); err == nil {
				check(t, conn.Close())
			}
		}
		c, err := client.Dial(r.a.path, "")
		if err == nil {
			check(t, c.Close()) // some time has passed since the last
		} else if !errors.Is(err, verbs.ErrHost) || !strings.Contains(err.Error(), "connects too often") {
			t.Fatal(err)
		}
		return err != nil
	})
	if said := log.String(); strings.Count(said, "connects too often: 250 a second are served, after 1000 at once") != 1 {
		t.Errorf("got the log %q", said)
	}
	eventually(t, "it is served again", func() bool {
		c, err := client.Dial(r.a.path, "")
		return err == nil && c.Close() == nil
	})
}
