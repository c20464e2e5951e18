// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
)

// TestHolderIsAService: a process that holds an interface and serves programs is named with its socket, which has
// been renamed since it was bound, as services do.
func TestHolderIsAService(t *testing.T) {
	hosts := labtest.Pair(t)
	holder := load(t, Config{})
	must(t, attachIn(hosts.A, holder, "eth0", Auto))
	dir := t.TempDir()
	names := []string{filepath.Join(dir, ".new"), filepath.Join(dir, "roced.sock")}
	isAttached(t, attachIn(hosts.A, load(t, Config{}), "eth0", Auto), "process ")
	if path := serviceSocket(os.Getpid()); path != "" {
		t.Errorf("the socket of a process without clients: %s", path)
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: names[0], Net: "unixpacket"})
	must(t, err)
	defer listener.Close()
	listener.SetUnlinkOnClose(false)
	for _, name := range names {
		if name != names[0] {
			must(t, os.Rename(names[0], name))
		}
		err := attachIn(hosts.A, load(t, Config{}), "eth0", Auto)
		isAttached(t, err, "the service at "+name, "--socket "+name)
		if strings.Contains(err.Error(), "end that process") {
			t.Errorf("%v", err)
		}
	}
}

// TestServiceOfAnotherThread: the threads of a process may be in different namespaces, and any of them may have made
// the socket. Of the two threads here, one at least is not the process's first.
func TestServiceOfAnotherThread(t *testing.T) {
	hosts := labtest.Pair(t)
	isFound := func() error {
		path := filepath.Join(t.TempDir(), "roced.sock")
		listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
		if err != nil {
			return err
		}
		defer listener.Close()
		if found := serviceSocket(os.Getpid()); found != path {
			t.Errorf("the socket is %s, found %q", path, found)
		}
		return nil
	}
	must(t, hosts.A.Do(func() error {
		other := make(chan error)
		go func() { other <- hosts.B.Do(isFound) }()
		return errors.Join(<-other, isFound())
	}))
}
