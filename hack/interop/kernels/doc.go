// SPDX-License-Identifier: Apache-2.0

// Kernels runs the tests that require virtual machines. "make test-kernels" runs it.
//
//	Linux 6.1 and 6.12: VLANs, bonds and teams (build tag vlan), whose modules many kernels lack,
//	    and the steering program, because the verifiers of kernels differ
//	the newest Linux: two network cards with AF_XDP zero-copy (build tag cards), in a machine for each model
//
//	go test -c ── a binary per package in a folder ── 9p ──► /host, where they run one after another
//
// A skipped test counts as failed. With -short only the first part runs ("make kernels-short", a step of .ci/run), with
// -zerocopy only the second. hack/platforms runs all other tests on these kernels and more.
package main
