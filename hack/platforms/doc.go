// Platforms runs a release and all tests in virtual machines with other kernels and processors: make platforms.
//
//	main.go      the command line; the machines one after another
//	share.go     the folder that guests see as /host: the release's Debian packages, the source tree, tests as binaries
//	platform.go  the machines. Each boots, runs its cases, and boots again if a case has ended the kernel
//	cases.go     the cases: demo, doctor, programs in C over three networks
//	guest.sh     functions of the cases, inside
//	report.go    a line a case, and the table for the README
//
// A guest has no Go, no compiler and no network. Its root file system is that of hack/interop/vm: packages of Debian 12,
// and busybox. Images and Debian's packages are kept in its folder between runs. The exit status is 1 if a case failed, and 2
// if the command line is wrong.
//
//	go run ./hack/platforms -machines arm64-6.1 -only 'demo|memory'
//	go run ./hack/platforms -machines arm64-6.1 -only 'tests verbs/hca$' -run TestReads
//	go run ./hack/platforms -machines arm64-6.1 -share DIR -script 'uname -a; ls /host/share'
package main
