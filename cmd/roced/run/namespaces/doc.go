// SPDX-License-Identifier: Apache-2.0

// Package namespaces implements the device of programs in other network namespaces: a card on the interface
// with the default route there, opened for the first program and closed after the last.
//
//	device.go      the device, and the card of each namespace
//	interface.go   selection of the interface
//	access.go      access control
//	counters.go    counters, summed over all cards
//
//	program ── socket ── verbs/server (from where: SIOCGSKNS) ── Device ── a card for each namespace
//
// The namespace is that in which the program created its socket, so programs cannot select another. The card
// has the addresses of that namespace as GIDs, so no address translation (NAT) is involved.
package namespaces
