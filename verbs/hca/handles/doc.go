// SPDX-License-Identifier: Apache-2.0

// Package handles names the objects of a card: by handles, which its programs use, and by numbers, which peers use.
//
//	session ── Table[cq], Table[qp], … ── handle: place and generation    limits of the session, quota of its user
//	card ───── Numbers[qp], Numbers[srq] ── number of 24 bits             its low bits are the place in the engine's table
//
// A Table belongs to a session, and each object in it counts against the session's limit and the quota of the session's
// user. Numbers belong to a card. Neither has a lock: the owner's lock protects it (the card's for packages hca's tables,
// the session's for those of package ids).
//
// Out of scope: the objects themselves, and when they are destroyed.
package handles
