// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// TestNamespaceOfASocket: a connection's network namespace is that in which the program made its socket. That the
// program enters another one before it sends the hello, or ends, changes nothing.
func TestNamespaceOfASocket(t *testing.T) {
	needs.Root(t)
	check(t, CanTellCallers())
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	check(t, err)
	defer listener.Close()
	own, err := identifyNamespace("/proc/self/ns/net")
	check(t, err)
	for child, here := range map[string]bool{"connects": true, "moves": true, "comes": false} {
		t.Run(child, func(t *testing.T) {
			program := exec.Command(os.Args[0], path)
			program.Env = append(os.Environ(), childVariable+"="+child)
			check(t, program.Start())
			socket, err := listener.AcceptUnix()
			check(t, err)
			defer socket.Close()
			p := &Peer{socket: socket}
			_, err = socket.Read(make([]byte, 1)) // it is where it wants to be
			check(t, err)
			caller, err := p.Caller()
			check(t, err)
			defer p.Close()
			if (caller.Namespace == own) != here {
				t.Errorf("%+v; the service's is %+v", caller.Namespace, own)
			}
			check(t, program.Process.Signal(unix.SIGKILL))
			_ = program.Wait()
			later := &Peer{socket: socket}
			after, err := later.Caller()
			check(t, err)
			defer later.Close()
			if after.Namespace != caller.Namespace {
				t.Errorf("%+v, and %+v when the program has ended", caller.Namespace, after.Namespace)
			}
		})
	}
}

// connects is a program that connects and stays.
func connects(path string) error { return connectBetween(path, nil, nil) }

// moves connects, enters another network namespace, and stays.
func moves(path string) error { return connectBetween(path, nil, enterNew) }

// comes enters another network namespace, connects, and stays.
func comes(path string) error { return connectBetween(path, enterNew, nil) }

func enterNew() error { return unix.Unshare(unix.CLONE_NEWNET) }

// connectBetween connects between two steps, all on one thread, and reports when it is done.
func connectBetween(path string, before, after func() error) error {
	runtime.LockOSThread()
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return err
	}
	if after != nil {
		if err := after(); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte{1}); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
