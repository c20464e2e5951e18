// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"debug/elf"
	"debug/gosym"
	"fmt"
	"slices"
	"strings"
)

// plain contains the functions of golang.org/x/sys/unix, in lower case, that behave the same on every supported kernel:
// system calls older than Linux 3.0 for memory, files, events, clocks and the process itself, and helpers.
var plain = strings.Fields(`
	capget capset clockgettime close dup3 epollcreate1 epollctl epollwait eventfd faccessat faccessat2 fcntl fstat fstatat ftruncate
	getgroups getpid getrlimit getrusage gettid kill madvise mmap mprotect mremap munmap pipe2 poll ppoll prctl read setnonblock
	tgkill timerfdcreate timerfdsettime write
	rawsyscall rawsyscall6 rawsyscallnoerror syscall syscall6 syscallnoerror
	byteptrfromstring byteslicefromstring byteslicetostring errnoname init iscapdacoverrideset isgroupmember signalname`)

// facing contains the packages whose functions use the kernel's network interfaces or load programs into the kernel.
var facing = []string{"github.com/vishvananda/netlink", "github.com/vishvananda/netns", "github.com/cilium/ebpf"}

// KernelCalls returns the functions in the suite's binary that can behave differently on different kernels: those of
// packages for netlink and eBPF, the page size, and those of golang.org/x/sys/unix that are not in plain. The linker
// keeps only functions that the tests can reach. Call Build before.
func (s *Suite) KernelCalls() (functions []string, err error) {
	binary, err := elf.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer binary.Close()
	lines, text := binary.Section(".gopclntab"), binary.Section(".text")
	if lines == nil || text == nil {
		return nil, fmt.Errorf("%s has no function table", s.path)
	}
	data, err := lines.Data()
	if err != nil {
		return nil, fmt.Errorf("functions of %s: %w", s.path, err)
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		return nil, fmt.Errorf("functions of %s: %w", s.path, err)
	}
	for _, function := range table.Funcs {
		if dependsOnKernel(function.Name) {
			functions = append(functions, function.Name)
		}
	}
	return functions, nil
}

// dependsOnKernel reports whether a function can behave differently on different kernels.
func dependsOnKernel(function string) bool {
	if name, found := strings.CutPrefix(function, "golang.org/x/sys/unix."); found {
		return !isPlain(name)
	}
	return function == "syscall.Getpagesize" || slices.ContainsFunc(facing, func(path string) bool { return strings.HasPrefix(function, path) })
}

// isPlain reports whether a function of golang.org/x/sys/unix is plain.
func isPlain(name string) bool {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "(*mmapper)."), ".") // without the number of a function literal
	return slices.Contains(plain, strings.ToLower(name))
}
