// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestNamesAreUnique(t *testing.T) {
	a, b := labtest.New(t, "lab-test"), labtest.New(t, "lab-test")
	want := fmt.Sprintf("lab-test-%d-", os.Getpid())
	if a.Name() == b.Name() || !strings.HasPrefix(a.Name(), want) {
		t.Errorf("names %q and %q, want two that begin with %q", a.Name(), b.Name(), want)
	}
}

func TestBadPrefix(t *testing.T) {
	for _, prefix := range []string{"", "a/b"} {
		if _, err := lab.New(prefix); !errors.Is(err, unix.EINVAL) {
			t.Errorf("New(%q): %v, want EINVAL", prefix, err)
		}
	}
}

func TestCloseRemoves(t *testing.T) {
	ns := labtest.New(t, "lab-test")
	if inode(t, ns.Path()) == inode(t, "/proc/thread-self/ns/net") {
		t.Fatal("the name refers to the namespace of the test")
	}
	for range 2 {
		if err := ns.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(ns.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s after Close: %v", ns.Path(), err)
	}
	if err := ns.Do(func() error { return nil }); err == nil {
		t.Error("Do works after Close")
	}
}

func TestDoGoesBack(t *testing.T) {
	a, b := labtest.New(t, "lab-test"), labtest.New(t, "lab-test")
	home := inode(t, "/proc/thread-self/ns/net")
	sentinel := errors.New("from inside")
	err := a.Do(func() error {
		inside(t, a)
		if err := b.Do(func() error { inside(t, b); return nil }); err != nil {
			t.Error(err)
		}
		inside(t, a)
		return sentinel
	})
	if err != sentinel {
		t.Errorf("Do: %v, want the function's own error", err)
	}
	func() {
		defer func() { recover() }()
		a.Do(func() error { panic("inside") })
	}()
	if now := inode(t, "/proc/thread-self/ns/net"); now != home {
		t.Errorf("thread is in namespace %d after Do, was in %d", now, home)
	}
}

func TestPrune(t *testing.T) {
	ours := labtest.New(t, "lab-prune")
	// A copy of the namespace under the name that a killed process would have left.
	gone := needs.Command(t, "true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	left := fmt.Sprintf("/run/netns/lab-prune-a-%d-1", gone.Process.Pid)
	bind(t, ours.Path(), left)
	other := fmt.Sprintf("/run/netns/lab-keep-%d-1", gone.Process.Pid)
	bind(t, ours.Path(), other)
	unburied := fmt.Sprintf("/run/netns/lab-prune-b-%d-1", zombie(t))
	bind(t, ours.Path(), unburied)

	if err := lab.Prune("lab-prune"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{left, unburied} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	for _, path := range []string{ours.Path(), other} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("Prune removed a namespace in use: %v", err)
		}
	}
}

// zombie returns the ID of a process that has ended and was not reaped.
func zombie(t *testing.T) (pid int) {
	t.Helper()
	ended := needs.Command(t, "true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ended.Wait() })
	for deadline := time.Now().Add(waittest.Limit); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", ended.Process.Pid))
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%s, %v", stat, err)
		}
		if strings.Contains(string(stat), "(true) Z ") {
			return ended.Process.Pid
		}
	}
}

func TestVeth(t *testing.T) {
	a, b := labtest.New(t, "lab-test"), labtest.New(t, "lab-test")
	macA, macB := net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}
	err := lab.Veth(a, b, "left", "right",
		lab.WithMTU(9000), lab.WithQueues(3), lab.WithMACs(macA, macB))
	if err != nil {
		t.Fatal(err)
	}
	checkLink(t, a, "left", macA)
	checkLink(t, b, "right", macB)
	if err := lab.Veth(a, b, "left", "other"); !errors.Is(err, unix.EEXIST) {
		t.Errorf("second veth of the same name: %v, want EEXIST", err)
	}
}

func TestVethWithoutIPv6(t *testing.T) {
	a, b := labtest.New(t, "lab-test"), labtest.New(t, "lab-test")
	if err := lab.Veth(a, b, "left", "right", lab.WithMTU(576)); err != nil {
		t.Error(err)
	}
}

// TestPairReaches: datagrams to every kind of address arrive immediately after setup.
func TestPairReaches(t *testing.T) {
	hosts := labtest.Pair(t)
	from := index(t, hosts.A)
	// Use the index, because package net caches names across namespaces.
	zone := strconv.Itoa(index(t, hosts.B))
	for _, target := range []string{"10.77.0.2", "fd77::2", linkLocal(t, hosts.B) + "%" + zone} {
		address := netip.MustParseAddr(target)
		receiver := listen(t, hosts.B, address)
		if err := hosts.A.Do(func() error { return send(receiver, from) }); err != nil {
			t.Errorf("send to %s: %v", target, err)
			continue
		}
		if n, _, err := receiver.ReadFromUDPAddrPort(make([]byte, 16)); err != nil || n != 2 {
			t.Errorf("receive at %s: %d bytes, %v", target, n, err)
		}
	}
}

func TestAddAddressErrors(t *testing.T) {
	ns := labtest.New(t, "lab-test")
	if err := ns.AddAddress("lo", "nonsense"); err == nil {
		t.Error("no error for an invalid address")
	}
	if err := ns.AddAddress("eth7", "10.0.0.1/24"); err == nil {
		t.Error("no error for a missing link")
	}
	if _, err := ns.Index("eth7"); err == nil {
		t.Error("no error for the index of a missing link")
	}
}
