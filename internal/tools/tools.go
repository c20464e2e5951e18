// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// debian lists the tools of each Debian package: programs by their names, files by the patterns of their paths.
var debian = map[string]string{
	"abigail-tools":          "abidiff",
	"apt":                    "apt-get",
	"apt-utils":              "apt-ftparchive",
	"bash":                   "bash",
	"binutils":               "objdump",
	"bsdutils":               "script",
	"busybox-static":         "busybox",
	"clang":                  "clang clang++",
	"coreutils":              "sleep true",
	"cpio":                   "cpio",
	"createrepo-c":           "createrepo_c",
	"curl":                   "curl",
	"debian-archive-keyring": "/usr/share/keyrings/debian-archive-keyring.gpg",
	"dash":                   "sh",
	"dnf":                    "dnf",
	"dpkg":                   "dpkg",
	"e2fsprogs":              "mkfs.ext4",
	"g++":                    "c++ g++",
	"gcc":                    "cc gcc",
	"git":                    "git",
	"golang-go":              "go",
	"gpg":                    "gpg",
	"gpg-agent":              "gpg-agent",
	"groff-base":             "groff",
	"hugo":                   "hugo",
	"ibverbs-utils":          "ibv_devices ibv_devinfo ibv_rc_pingpong ibv_srq_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_xsrq_pingpong",
	"iproute2":               "ip",
	"iptables":               "iptables",
	"kmod":                   "depmod",
	"libbpf-dev":             "/usr/include/bpf/bpf_helpers.h",
	"libc6-dev":              "/usr/include/stdio.h",
	"libibverbs-dev":         "/usr/include/infiniband/verbs.h",
	"libibverbs1":            "/lib/*/libibverbs.so.1",
	"librdmacm-dev":          "/usr/include/rdma/rdma_verbs.h /usr/include/rdma/rsocket.h",
	"librdmacm1":             "/lib/*/librdmacm.so.1",
	"linux-libc-dev":         "/usr/include/*/asm/types.h",
	"llvm":                   "llvm-strip",
	"make":                   "make",
	"man-db":                 "man",
	"mmdebstrap":             "mmdebstrap",
	"musl-tools":             "musl-gcc",
	"openssl":                "openssl",
	"perftest":               "ib_atomic_bw ib_atomic_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_write_bw ib_write_lat",
	"podman":                 "podman",
	"python3":                "python3 /usr/bin/python3",
	"python3-scapy":          "/usr/lib/python3/dist-packages/scapy/contrib/roce.py",
	"qemu-system-arm":        "qemu-system-aarch64",
	"qemu-system-x86":        "qemu-system-x86_64",
	"rdmacm-utils":           "mckey rdma_client rdma_server rdma_xclient rdma_xserver riostream rping rstream ucmatose udaddy",
	"runc":                   "runc",
	"systemd":                "systemd-analyze",
	"tshark":                 "tshark",
	"uidmap":                 "newuidmap",
	"util-linux":             "setsid",
	"valgrind":               "valgrind",
	"xz-utils":               "xz",
	"zstd":                   "zstd",

	// for another processor
	"gcc-aarch64-linux-gnu libc6-dev-arm64-cross": "aarch64-linux-gnu-gcc",
	"gcc-x86-64-linux-gnu libc6-dev-amd64-cross":  "x86_64-linux-gnu-gcc",
	"musl-dev:amd64": "x86_64-linux-musl-gcc",
	"musl-dev:arm64": "aarch64-linux-musl-gcc",
}

// Missing checks all tools at once, and returns an error that names each one that this machine lacks and the command
// that installs them on Debian. A name with a slash is the pattern of a file, any other is a program in PATH.
func Missing(names ...string) error {
	absent := slices.DeleteFunc(slices.Clone(names), present)
	slices.Sort(absent)
	absent = slices.Compact(absent)
	if len(absent) == 0 {
		return nil
	}
	return fmt.Errorf("missing %s (Debian: %s)", strings.Join(absent, ", "), Install(absent...))
}

func present(name string) bool {
	if strings.Contains(name, "/") {
		files, err := filepath.Glob(name)
		return err == nil && len(files) > 0
	}
	_, err := exec.LookPath(name)
	return err == nil
}

// Install returns the command that installs tools on Debian.
func Install(names ...string) string {
	packages := Packages(names...)
	command := "apt-get install --no-install-recommends " + strings.Join(packages, " ")
	for _, name := range packages {
		if _, arch, foreign := strings.Cut(name, ":"); foreign {
			return "dpkg --add-architecture " + arch + " && apt-get update && " + command
		}
	}
	return command
}

// Packages returns the Debian packages of tools, sorted.
func Packages(names ...string) (packages []string) {
	for _, name := range names {
		list, _ := Package(name)
		packages = append(packages, strings.Fields(list)...)
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// Package returns the Debian package of a tool, or several with a space between, and whether the tool is known.
func Package(name string) (string, bool) {
	for list, tools := range debian {
		if slices.Contains(strings.Fields(tools), name) {
			return list, true
		}
	}
	return "", false
}
