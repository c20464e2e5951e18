// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"slices"
	"testing"
)

// TestDependsOnKernel checks that system calls for memory, files and events do not depend on the kernel, while those
// for networks and the page size do.
func TestDependsOnKernel(t *testing.T) {
	for function, want := range map[string]bool{
		"golang.org/x/sys/unix.(*mmapper).Mmap.deferwrap1": false,
		"golang.org/x/sys/unix.EpollWait":                  false,
		"golang.org/x/sys/unix.Sendmsg":                    true,
		"golang.org/x/sys/unix.Uname":                      true,
		"github.com/vishvananda/netlink.LinkAdd":           true,
		"github.com/cilium/ebpf/link.AttachXDP":            true,
		"syscall.Getpagesize":                              true,
		"syscall.Read":                                     false,
		"net.Listen":                                       false,
	} {
		if got := dependsOnKernel(function); got != want {
			t.Errorf("%s: %v, want %v", function, got, want)
		}
	}
}

// TestKernelCalls checks that the tests of memory models do not depend on the kernel, and those of namespaces do.
func TestKernelCalls(t *testing.T) {
	folder := t.TempDir()
	for name, want := range map[string]string{"internal/litmus": "", "internal/lab": "golang.org/x/sys/unix.Setns"} {
		s := Suite{Name: name}
		if err := s.Build(t.Context(), folder); err != nil {
			t.Fatal(err)
		}
		functions, err := s.KernelCalls()
		if err != nil || want == "" && len(functions) > 0 || want != "" && !slices.Contains(functions, want) {
			t.Errorf("%s: %q, %v", name, functions, err)
		}
	}
}
