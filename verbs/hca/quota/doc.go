// SPDX-License-Identifier: Apache-2.0

// Package quota counts the objects and memory of the users of cards, and limits them.
//
//	session ── takes objects, memory ──► Quota    limits of one user, in all its programs, on any cards
//	                                       │
//	service ── its limits ──────────────► Pool    what all users may have together
//
// Of a resource for all users, such as a card's queue pairs or a service's memory, the last eighth is reserved for
// users that have few (Shared). So a user without any can still get some, whatever other users hold.
//
// Next hops are entries in the kernel's neighbour tables. A user can have MostUnresolved next hops that have not
// responded; Neighbours limits those of all users, with the same reserve.
//
// A Quota locks its own mutex, then its pool's. Callers may hold a card's lock. The card decides when a session's
// objects are returned.
package quota
