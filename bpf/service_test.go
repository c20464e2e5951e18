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

// TestHolderIsAService checks that the error contains the socket of a service that holds the interface. The socket has
// been renamed after bind, as by services.
func TestHolderIsAService(t *testing.T) {
	hosts := labtest.Pair(t)
	holder := load(t, Config{})
	must(t, attachIn(hosts.A, holder, "eth0", Auto))
	dir := t.TempDir()
	names := []string{filepath.Join(dir, ".new"), filepath.Join(dir, "roced.sock")}
	isAttached(t, attachIn(hosts.A, load(t, Config{}), "eth0", Auto), "process ")
	if path := serviceSocket(os.Getpid()); path != "" {
		t.Errorf("socket of a process that is no service: %s", path)
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

// TestServiceOfAnotherThread checks that a socket is found if a thread in another namespace created it. At least one of
// the two threads is not the first one of the process.
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
