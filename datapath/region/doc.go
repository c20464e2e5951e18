// SPDX-License-Identifier: Apache-2.0

// Package region implements the registered memory of a session: its memory regions and memory windows, and the bytes
// that a request or a packet may access with their keys.
//
//	key ──► Table (keys.go) ──┬──► MR (mr.go): contiguous memory ◄────────────────────┐
//	                          │      fast (fast.go): registered by requests ──────────┤ pieces of other regions
//	                          │      integrity (integrity.go): with signatures ───────┘
//	                          └──► MW (mw.go): a part of a region, for peers
//
//	an SGE of a request ──────► Find ────┬──► the first contiguous piece
//	an R_Key of a packet ─────► Remote ──┘    (none if the region has signatures: use Move or MoveRemote)
//	a list of SGEs ───────────► Pieces: all pieces, to gather from or to scatter to
//
// A Table belongs to a session: it is used under the lease of the session's engine, and changes between rounds. Results
// are used for one packet at most, since a program can revoke a key at any time.
//
// Addresses and lengths come from programs and peers. They are checked for overflow and never dereferenced: an address
// is converted to an offset from the base address that the region's owner has chosen.
//
// Allocation of memory and limits on registration are in verbs/hca.
// Sources: IBA 10.6 (memory management), 11.2.8, A14 (keys of XRC).
package region
