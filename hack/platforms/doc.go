// SPDX-License-Identifier: Apache-2.0

// Platforms runs a release and all tests in virtual machines with other kernels and processors. "make platforms" runs
// it.
//
//	main.go      the command line; two machines at a time
//	share.go     the folder that guests mount as /host: the release's Debian packages, the source tree, test binaries
//	platform.go  the machines. Each boots, runs its cases, and boots again if a case has crashed or hung it
//	cases.go     the cases: demo, doctor, programs in C over three networks, the tests of each package
//	guest.sh     functions for the cases in the guest
//	passed.go    the file of -resume: the cases that have passed
//	report.go    a line per finished case with its time, and the table for the README
//
// A guest has no Go, no compiler and no network. Its root file system is that of hack/interop/vm: packages of Debian
// 12, and busybox. Images and Debian's packages are kept between runs (vm.ImageDir). The exit status is 1 if a case
// failed, and 2 if the command line is invalid.
//
// Tests depend on the kernel if their binary links a function of netlink or cilium/ebpf, the page size, or a system
// call of golang.org/x/sys/unix other than the excluded ones of suite.KernelCalls (memory, files, events, clocks). The
// linker keeps only functions that the tests can reach. Such tests run on each machine. The others run on the first
// machine of each architecture. On the other machines their line is "once", and the table counts them. Tests below
// hack/ test developers' tools, which require Go, and do not run in guests.
//
// With -resume a case is not repeated if it has passed on the same machine and kernel, with the same test binary and
// files of the package's folder, or with the same script and release packages. A complete run has no -resume.
//
//	go run ./hack/platforms -machines arm64-6.1 -only 'demo|memory'
//	go run ./hack/platforms -machines arm64-6.1 -only 'tests verbs/hca$' -run TestReads
//	go run ./hack/platforms -resume /var/tmp/roced-interop/passed
//	go run ./hack/platforms -machines arm64-6.1 -share DIR -script 'uname -a; ls /host/share'
package main
