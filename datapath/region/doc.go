// Package region is the memory that a program lets its card use: what its keys name, and which bytes a request or a
// packet may touch by them.
//
//	key ──► Table (keys.go) ──┬──► MR (mr.go): memory in one piece ◄─────────────────┐
//	                          │      fast (fast.go): what requests register: pieces ──┤ of other regions
//	                          │      integrity (integrity.go): with signatures ───────┘
//	                          └──► MW (mw.go): a part of a region, for peers
//
//	an SGE of a request ──────► Find ────┬──► bytes in one piece, or the first of several
//	an R_Key of a packet ─────► Remote ──┘    (none if they have signatures: then Move, MoveRemote)
//	a list of SGEs ───────────► Pieces: all of them, to gather from or to scatter to
//
// A Table is a session's, and belongs to the engine that serves it: it is used under the engine's lease, and changes
// between rounds. Nothing that was found is kept beyond a packet, since a program can revoke a key at any time.
//
// Addresses and lengths are what programs and peers wrote. They are bounded with overflow in mind, and never used as
// addresses: they count from the base that a region's owner chose.
//
// Left out: where memory comes from, and who may register how much of it (verbs/hca).
// Source: IBA 10.6 (memory management), 11.2.8, A14 (XRC's keys).
package region
