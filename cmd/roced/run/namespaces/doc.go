// Package namespaces is the device of programs in other network namespaces: a card on the interface with the default
// route there, opened for the first program and closed after the last.
//
//	device.go      the device, and the card of each namespace
//	interface.go   which interface it is
//	access.go      who may have one
//	counters.go    the sums over all cards
//
//	program ── socket ── verbs/server (from where: SIOCGSKNS) ── Device ── a card for each namespace
//
// A program names no namespace: it has the card of the one in which its socket was made. Its addresses are the card's GIDs, so no
// translation of addresses (NAT) comes between.
package namespaces
