// Package quota counts what the users of cards have, and says when it is enough.
//
//	session ── takes objects, memory ──► Quota    what one user may have, in all its programs, on any cards
//	                                       │
//	service ── its limits ──────────────► Pool    what all users may have together
//
// Of what is there for all, a card's queue pairs or a service's memory, the last eighth is for those that have little
// (Shared): whatever users with much take, one who has none gets some.
//
// Next hops are entries in the kernel's tables of neighbours. A user can have MostUnresolved that have not answered;
// Neighbours limits those of all users, with the same reserve.
//
// A Quota locks its own mutex, then its pool's. Callers may hold a card's lock. Who has closed what, and when a session's
// objects are given back, is the card's business.
package quota
