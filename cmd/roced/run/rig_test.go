// SPDX-License-Identifier: Apache-2.0

package run

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

// serviceRig is a roced run in its own process, in a namespace, with a fake service manager.
type serviceRig struct {
	*cmdtest.Child
	dir     string // contains the configuration roced.toml and the socket roced.sock
	manager *net.UnixConn
}

// newRig prepares a service with a configuration, to which it adds the keys of the socket and the state directory.
func newRig(t *testing.T, text string, args ...string) *serviceRig {
	t.Helper()
	r := newManager(t)
	r.configure(t, text)
	r.prepare(t, append([]string{"--config", r.path("roced.toml")}, args...)...)
	return r
}

// newManager creates a directory and a service manager for a service.
func newManager(t *testing.T) *serviceRig {
	t.Helper()
	r := &serviceRig{dir: t.TempDir()}
	path := filepath.Join(r.dir, "notify")
	var err error
	if r.manager, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.manager.Close() })
	return r
}

// prepare prepares the process.
func (r *serviceRig) prepare(t *testing.T, args ...string) {
	t.Helper()
	r.prepareAt(t, r.path("notify"), args...)
}

// prepareAt is prepare with the path of the manager's socket.
func (r *serviceRig) prepareAt(t *testing.T, manager string, args ...string) {
	t.Helper()
	r.Child = cmdtest.Command(t, append([]string{"run"}, args...)...)
	r.Env = append(r.Env, "NOTIFY_SOCKET="+manager)
}

func (r *serviceRig) path(name string) string { return filepath.Join(r.dir, name) }

// configure writes the configuration.
func (r *serviceRig) configure(t *testing.T, text string) {
	t.Helper()
	text = "state_dir = \"" + r.dir + "\"\nsocket.path = \"" + r.path("roced.sock") + "\"\n" + text
	if err := os.WriteFile(r.path("roced.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startIn starts the service in a namespace.
func (r *serviceRig) startIn(t *testing.T, ns *lab.Namespace) {
	t.Helper()
	if err := ns.Do(func() error { r.Start(t); return nil }); err != nil {
		t.Fatal(err)
	}
}

// patience limits the wait for expected events.
var patience = waittest.Limit

// await waits until the manager receives a message that contains all of want.
func (r *serviceRig) await(t *testing.T, want ...string) string {
	t.Helper()
	buffer := make([]byte, 1<<16)
	if err := r.manager.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var received []string
	for {
		n, err := r.manager.Read(buffer)
		if err != nil {
			t.Fatalf("want notification %q, got %q: %v; log: %s", want, received, err, r.Said())
		}
		message := string(buffer[:n])
		if saysAll(message, want) {
			return message
		}
		if received = append(received, message); strings.Contains(message, "STOPPING=1") {
			t.Fatalf("want notification %q, got %q; log: %s", want, received, r.Said())
		}
	}
}

func saysAll(text string, want []string) bool {
	for _, w := range want {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func (r *serviceRig) signal(t *testing.T, s unix.Signal) {
	t.Helper()
	if err := r.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stop stops the service (SIGSTOP), and waits until all of its threads have stopped.
func (r *serviceRig) stop(t *testing.T) {
	t.Helper()
	r.signal(t, unix.SIGSTOP)
	if err := unix.Waitid(unix.P_PID, r.Process.Pid, nil, unix.WSTOPPED, nil); err != nil {
		t.Fatal(err)
	}
}

// terminate stops the service, checks that it exits cleanly, and returns its log.
func (r *serviceRig) terminate(t *testing.T) (log string) {
	t.Helper()
	r.signal(t, unix.SIGTERM)
	r.await(t, "STOPPING=1")
	if code, _ := r.End(t); code != 0 {
		t.Errorf("exit code %d: %s", code, r.Said())
	}
	return r.Said()
}

// checkUsage checks that a command line is rejected.
func checkUsage(t *testing.T, args, want string) {
	t.Helper()
	cmdtest.CheckFailure(t, append([]string{"run"}, strings.Fields(args)...), cli.ExitUsage, want)
}

// passSocket passes the service the socket passed.sock, as systemd does.
func (r *serviceRig) passSocket(t *testing.T) {
	t.Helper()
	passed, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: r.path("passed.sock"), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { passed.Close() })
	file, err := passed.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	r.ExtraFiles = []*os.File{file}
	r.Env = append(r.Env, "LISTEN_FDS=1", "LISTEN_FDNAMES=roced.socket")
	r.Args = append([]string{"/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`}, r.Args...)
	r.Path = "/bin/sh"
}
