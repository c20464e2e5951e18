// SPDX-License-Identifier: Apache-2.0

// Platforms runs a release and all tests in virtual machines with other kernels and processors: make platforms.
//
//	main.go      the command line; two machines at a time
//	share.go     the folder that guests see as /host: the release's Debian packages, the source tree, tests as binaries
//	platform.go  the machines. Each boots, runs its cases, and boots again if a case has ended the kernel
//	cases.go     the cases: demo, doctor, programs in C over three networks, the tests of each package
//	guest.sh     functions of the cases, inside
//	passed.go    the file of -resume: the cases that have passed
//	report.go    a line a case as it ends, with its time, and the table for the README
//
// A guest has no Go, no compiler and no network. Its root file system is that of hack/interop/vm: packages of Debian 12,
// and busybox. Images and Debian's packages are kept in its folder between runs. The exit status is 1 if a case failed, and 2
// if the command line is wrong.
//
// Tests depend on the kernel if their binary links a function of netlink or cilium/ebpf, the page size, or a system call of
// golang.org/x/sys/unix other than those that suite.KernelCalls names (memory, files, events, clocks). The linker keeps only
// functions that the tests can reach. Such tests run on each machine. The others run on the first machine of each
// architecture; on the other machines their line is "once", and the table counts them. Tests below hack/ are of
// developers' tools: they need Go and run in no guest.
//
// With -resume a case is not repeated if it has passed on the same machine and kernel, with the same test binary and
// files of the package's folder, or with the same script and release packages. A whole run has no -resume.
//
//	go run ./hack/platforms -machines arm64-6.1 -only 'demo|memory'
//	go run ./hack/platforms -machines arm64-6.1 -only 'tests verbs/hca$' -run TestReads
//	go run ./hack/platforms -resume /var/tmp/roced-interop/passed
//	go run ./hack/platforms -machines arm64-6.1 -share DIR -script 'uname -a; ls /host/share'
package main
