// Kernels runs the tests that need a kernel (namespaces, XDP, AF_XDP, netlink) inside
// virtual machines with the kernels that roced promises to run on: Debian 12's own, 6.1,
// and the one of its backports. Nothing may be skipped there.
//
//	go test -c ── a binary a package, in a folder ── 9p ──► /host, run one after another
//
// Then a machine with the newest kernel and two network cards that have AF_XDP zero-copy runs tests over these
// (build tag cards), once for each model; with -zerocopy nothing else.
//
// It is run by "make test-kernels". The tests of VLANs and bonds (build tag vlan) run here only:
// the modules they need are missing from many kernels that the quick tests run on. With -short it
// runs these, and the steering program's: "make kernels-short", a step of .ci/run.
package main
