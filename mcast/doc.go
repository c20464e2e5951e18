// SPDX-License-Identifier: Apache-2.0

// Package mcast implements the rules of multicast groups: their names, and the queue pairs attached
// to them. It does no input or output.
//
//	IP address ◄──► MGID ──► MAC                      mgid.go
//
//	attach ──► Table: MGID, MLID ──► queue pairs      groups.go
//	             │ the list of a group's queue pairs: replaced, never changed
//	             ▼
//	           the engine, between two rounds
//
// A Table has rdmavt's rules and return values. It has no lock: the card's control plane calls it under its own lock.
// As in the kernel, an attach does not make the host a member of the group; package mcast/membership does that,
// independently of this package.
//
// Out of scope: memberships, source-specific groups, multicast routing.
package mcast
