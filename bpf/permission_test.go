// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
)

// childVariable is an environment variable that makes the test binary run one of children instead of the tests.
const childVariable = "ROCED_BPF_CHILD"

// children contains functions that run as user nobody with the capabilities of the test, and print the result. The
// interface is always lo.
var children = map[string]func(){
	"load": func() {
		s, err := Load(Config{})
		if err == nil {
			err = s.Close()
		}
		report(err)
	},
	"without descriptors": withoutDescriptors,
	"uncounted":           func() { fmt.Print(uncounted()) },
	// Like a daemon that drops its capabilities after Load.
	"use": func() {
		s, err := Load(Config{})
		if err == nil {
			err = errors.Join(dropCapabilities(), s.Attach(1, Auto), s.AddQP(1),
				s.AddAddress(own4), s.AddGroup(group4), readCounters(s), s.Close())
		}
		report(err)
	},
}

// withoutDescriptors calls Load with an increasing number of free descriptors, until it succeeds.
func withoutDescriptors() {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		report(err)
		return
	}
	_ = unix.Close(fd) // fd is the next free descriptor
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	for room := range uint64(2 * loadDescriptors) { // some descriptors above fd are open
		limit.Cur = uint64(fd) + room
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
		s, err := Load(Config{Renewable: true})
		if err == nil {
			fmt.Print("fine at last")
			_ = s.Close()
			return
		}
		if !errors.Is(err, unix.EMFILE) || !strings.Contains(err.Error(), "LimitNOFILE=") {
			fmt.Printf("with room for %d: %v", room, err)
			return
		}
	}
	fmt.Print("never")
}

func report(err error) {
	fmt.Printf("%t %t %v", errors.Is(err, ErrPermission), errors.Is(err, unix.EPERM), err)
}

func readCounters(s *Steering) error {
	_, err := s.Counters()
	return err
}

// dropCapabilities drops the capabilities of the calling thread, to which the child is locked.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// runChild runs a child in the namespace with capabilities, and returns its output.
func runChild(t *testing.T, ns *lab.Namespace, name string, capabilities ...uintptr) string {
	t.Helper()
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), childVariable+"="+name)
	child.SysProcAttr = &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: 65534, Gid: 65534},
		AmbientCaps: capabilities,
	}
	var out []byte
	must(t, ns.Do(func() (err error) {
		out, err = child.CombinedOutput()
		return err
	}))
	return string(out)
}

func TestCapabilities(t *testing.T) {
	const (
		fine    = "false false <nil>"
		missing = "true true load the steering program: not permitted: missing "
	)
	ns := labtest.New(t, "roced-bpf")
	all := []uintptr{unix.CAP_BPF, unix.CAP_NET_ADMIN, unix.CAP_PERFMON}
	for _, test := range []struct {
		child        string
		capabilities []uintptr
		want         []string
	}{
		{"load", nil, []string{missing + "CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"}},
		{"load", []uintptr{unix.CAP_NET_ADMIN, unix.CAP_PERFMON}, []string{missing + "CAP_BPF"}},
		{"load", []uintptr{unix.CAP_BPF, unix.CAP_PERFMON}, []string{missing + "CAP_NET_ADMIN"}},
		// The result depends on the kernel version, but no other error is allowed.
		{"load", []uintptr{unix.CAP_BPF, unix.CAP_NET_ADMIN}, []string{fine, missing + "CAP_PERFMON"}},
		{"load", all, []string{fine}},
		// CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON, and on some kernels CAP_NET_ADMIN.
		{"load", []uintptr{unix.CAP_SYS_ADMIN}, []string{fine, missing + "CAP_NET_ADMIN"}},
		{"load", []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}, []string{fine}},
		{"use", all, []string{fine}},
	} {
		t.Run(fmt.Sprintf("%s with %v", test.child, test.capabilities), func(t *testing.T) {
			if got := runChild(t, ns, test.child, test.capabilities...); !slices.Contains(test.want, got) {
				t.Errorf("%s\nwant %q", got, test.want)
			}
		})
	}
}

// TestNoDescriptors checks that Load reports a lack of descriptors at each of its steps.
func TestNoDescriptors(t *testing.T) {
	ns := labtest.New(t, "roced-bpf")
	if got := runChild(t, ns, "without descriptors", unix.CAP_BPF, unix.CAP_NET_ADMIN, unix.CAP_PERFMON); got != "fine at last" {
		t.Error(got)
	}
}

// TestRefusedDespiteCapabilities checks the error for EPERM if no capability is missing.
func TestRefusedDespiteCapabilities(t *testing.T) {
	needs.Root(t)
	for _, test := range []struct {
		cause      error
		permission bool
	}{
		{fmt.Errorf("MEMLOCK may be too low: %w", unix.EPERM), true},
		{unix.EACCES, false},
		{unix.ENOMEM, false},
	} {
		err := explainLoad(test.cause)
		if errors.Is(err, ErrPermission) != test.permission || errors.Is(err, test.cause) == test.permission {
			t.Errorf("%v from %v", err, test.cause)
		}
	}
}
