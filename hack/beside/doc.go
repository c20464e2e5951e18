// SPDX-License-Identifier: Apache-2.0

// Command beside runs hack/bench of this tree and of an earlier revision in turns, and says which cases have become
// slower:
//
//	go run ./hack/beside -rounds 10 REVISION
//
//	the revision's bench ─┐ round 1, 2, …       ┌─► per case and round: now / before
//	                      ├──────────► records ─┤
//	this tree's bench ────┘ in turns            └─► the median of the rounds
//
// What the machine does meanwhile hits both, and the order of the two changes from round to round. It also hits what no
// tree of roced's can change: the kernel's own sockets, and the bench's own AF_XDP. Their ratios are counted apart, and
// say how much a ratio of roced's means. Nothing else should run on the machine; ten rounds of all parts take half an
// hour. A case that only one of the trees has is left out.
package main
