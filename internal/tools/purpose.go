// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"fmt"
	"slices"
)

// Purpose is a task that needs tools in addition to Go.
type Purpose struct {
	Name  string   // a make target, "tests" or "machines"
	About string   // description in the list
	Needs []string // names for Missing
}

var (
	compiler = []string{"gcc", "/usr/include/stdio.h"}
	clib     = append([]string{"make"}, compiler...)
	machines = []string{"qemu-system-x86_64", "cpio", "depmod", "xz", "zstd", "python3", "apt-get", "/usr/share/keyrings/debian-archive-keyring.gpg"}
)

// Purposes lists all purposes in order. The tools of make package and make release depend on their processors;
// [ForPackage] and [ForRelease] return them.
var Purposes = []Purpose{
	{"tests", "go test ./...: optional tools", slices.Concat(clib, []string{
		"c++", "clang", "musl-gcc", "valgrind", "abidiff", "objdump", "git", "groff", "man", "iptables", "tshark", "systemd-analyze",
		"gpg", "gpg-agent", "/usr/lib/python3/dist-packages/scapy/contrib/roce.py", "ibv_rc_pingpong", "rping", "ib_send_bw",
		"/lib/*/libibverbs.so.1", "/lib/*/librdmacm.so.1", "/usr/include/infiniband/verbs.h", "/usr/include/rdma/rdma_verbs.h",
	})},
	{"race", "make race, model, soak, chaos: the race detector", compiler},
	{"generate", "make generate", []string{"clang", "llvm-strip", "/usr/include/bpf/bpf_helpers.h", "/usr/include/*/asm/types.h"}},
	{"clib", "make clib", clib},
	{"programs", "make programs", append([]string{"curl", "openssl", "apt-get", "dpkg"}, clib...)},
	{"package", "make package, make image, for amd64 and arm64 on amd64", append([]string{"git"}, ForPackage("amd64", "amd64", "arm64")...)},
	{"release", "make release, for amd64 and arm64 on amd64", ForRelease("amd64", "amd64", "arm64")},
	{"test-install", "make test-install, on amd64", append([]string{"dnf", "busybox", "mmdebstrap", "ip"}, ForRelease("amd64", "amd64")...)},
	{"docs", "make docs", []string{"hugo"}},
	{"recording", "make recording", append([]string{"ib_write_bw"}, clib...)},
	{"fuzz", "make fuzz", []string{"git"}},
	{"fresh", "make fresh", []string{"mmdebstrap", "ip", "git"}},
	{"test-action", "make test-action", append([]string{"mmdebstrap", "ip"}, clib...)},
	{"image-kubernetes", "make image-kubernetes", []string{"podman"}},
	{"containers", "make containers", append([]string{"podman", "runc", "mmdebstrap", "newuidmap", "ip"}, clib...)},
	{"machines", "make test-kernels, make kernels-short: virtual machines", machines},
	{"platforms", "make platforms, make platforms-short, on amd64", slices.Concat(machines, []string{"qemu-system-aarch64", "git"}, ForPackage("amd64", "amd64", "arm64"))},
	{"interop", "make interop", append([]string{"tshark"}, machines...)},
	{"test-package", "make test-package", append([]string{"git", "qemu-system-x86_64", "mmdebstrap", "mkfs.ext4"}, ForPackage("amd64", "amd64")...)},
}

// Needs returns the tools of purposes.
func Needs(purposes ...string) (needs []string, err error) {
	for _, purpose := range purposes {
		i := slices.IndexFunc(Purposes, func(p Purpose) bool { return p.Name == purpose })
		if i < 0 {
			return nil, fmt.Errorf("unknown purpose %q; go run ./hack/tools lists them", purpose)
		}
		needs = append(needs, Purposes[i].Needs...)
	}
	return needs, nil
}

// Check is [Missing] for purposes.
func Check(purposes ...string) error {
	needs, err := Needs(purposes...)
	if err != nil {
		return err
	}
	return Missing(needs...)
}

// ForPackage returns the tools that build packages for a list of processors on a machine with the processor host.
func ForPackage(host string, arches ...string) []string {
	needs := []string{"make"}
	for _, arch := range arches {
		glibc, musl := Compilers(host, arch)
		needs = append(needs, glibc, musl)
		if arch == host {
			needs = append(needs, "/usr/include/stdio.h")
		}
	}
	return needs
}

// ForRelease returns the tools that build packages and their repositories.
func ForRelease(host string, arches ...string) []string {
	return append([]string{"git", "gpg", "gpg-agent", "apt-ftparchive", "createrepo_c"}, ForPackage(host, arches...)...)
}

// Compilers returns the C compilers for glibc and for musl that build for a processor, empty if the processor is unknown.
// Debian's compiler for musl is its compiler for glibc with musl's headers.
func Compilers(host, arch string) (glibc, musl string) {
	gnu := map[string]string{"amd64": "x86_64-linux-", "arm64": "aarch64-linux-"}[arch]
	switch {
	case gnu == "":
		return "", ""
	case arch == host:
		return "gcc", "musl-gcc"
	}
	return gnu + "gnu-gcc", gnu + "musl-gcc"
}
