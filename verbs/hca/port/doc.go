// Package port is the port of a card: its state as of the last query of the host, its GID table, and its addresses.
//
//	hca's follower ── Next, Set ──► State ◄── Now ── commands, ids, paths
//	                                  └── GIDTable: a line for each address
//
// A State is a value that each query replaces, so reading it needs no lock. Asking is held from a query of the host until
// its answer is acted on; it is taken before the card's lock.
//
// Out of scope: when the host is queried, and who is notified of a change (package hca).
package port
