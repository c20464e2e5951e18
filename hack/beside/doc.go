// SPDX-License-Identifier: Apache-2.0

// Command beside runs hack/bench of this tree and of an earlier revision alternately, and reports the cases that have
// become slower:
//
//	go run ./hack/beside -rounds 10 REVISION
//
//	the revision's bench ─┐ round 1, 2, …       ┌─► per case and round: now / before
//	                      ├──────────► records ─┤
//	this tree's bench ────┘ in turns            └─► the median of the rounds
//
// Other load on the machine affects both trees, and their order changes from round to round. It also affects the cases
// that are independent of roced: the kernel's sockets, and the bench's own AF_XDP. Their ratios are reported
// separately, and show the noise of the ratios. Run it on an idle machine. Ten rounds of all parts take half an hour.
// Cases that only one of the trees has are ignored.
package main
