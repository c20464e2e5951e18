// SPDX-License-Identifier: Apache-2.0

// Package labtest creates lab's namespaces for the duration of a test, and detects file descriptors that
// tests leave open.
//
//	Pair:     A eth0 10.77.0.1/24 fd77::1/64 ── eth0 10.77.0.2/24 fd77::2/64 B
//	          (with ROCED_CARDS in the environment: two network cards, one test at a time)
//	Switched: the same with a bridge between them, with snooping and a querier
//	BadPair:  the same with a wire that loses, duplicates, corrupts and delays RoCEv2 packets
//	Routed:   the same with a router between them, and 10.78.0.2/24 fd78::2/64 at B
//
// It is separate from lab so that no program links package testing.
package labtest
