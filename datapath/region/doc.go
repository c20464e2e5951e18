// SPDX-License-Identifier: Apache-2.0

// Package region implements the registered memory of a session: the objects of its keys, and the bytes that a request
// or a packet may access with them.
//
//	key ──► Table (keys.go) ──┬──► MR (mr.go): memory in one piece ◄──────────────────┐
//	                          │      fast (fast.go): registered by requests: pieces ──┤ of other regions
//	                          │      integrity (integrity.go): with signatures ───────┘
//	                          └──► MW (mw.go): a part of a region, for peers
//
//	an SGE of a request ──────► Find ────┬──► bytes in one piece, or the first of several
//	an R_Key of a packet ─────► Remote ──┘    (none if they have signatures: then Move, MoveRemote)
//	a list of SGEs ───────────► Pieces: all of them, to gather from or to scatter to
//
// A Table belongs to a session, and to the engine that serves it: it is used under the engine's lease, and changes
// between rounds. Results are kept for one packet at most, since a program can revoke a key at any time.
//
// Addresses and lengths come from programs and peers. They are checked for overflow, and never used as addresses: they
// are relative to the base that a region's owner chose.
//
// Allocation of memory and limits on registration are in verbs/hca.
// Source: IBA 10.6 (memory management), 11.2.8, A14 (XRC's keys).
package region
