// SPDX-License-Identifier: Apache-2.0

// Kernels runs the tests that run in virtual machines only: make test-kernels.
//
//	Linux 6.1 and 6.12: VLANs, bonds and teams (build tag vlan), whose modules many kernels lack,
//	    and the steering program, because each kernel has a verifier of its own
//	the newest Linux, two network cards with AF_XDP zero-copy (build tag cards), a machine for each model
//
//	go test -c ── a binary a package, in a folder ── 9p ──► /host, run one after another
//
// A skipped test counts as failed. With -short only the first part runs ("make kernels-short", a step of .ci/run), with
// -zerocopy only the second. hack/platforms runs all other tests on these kernels and more.
package main
