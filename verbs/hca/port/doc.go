// SPDX-License-Identifier: Apache-2.0

// Package port implements the port of a card: its state as of the last query of the host, its GID table, and its
// addresses.
//
//	hca's follower ── Next, Set ──► State ◄── Now ── commands, ids, paths
//	                                  └── GIDTable: a line for each address
//
// A State is a value that each query replaces, so reading it needs no lock. Asking is held from a query of the host
// until its result is applied; it is acquired before the card's lock.
//
// Out of scope: the time of queries, and notifications of changes (package hca).
package port
