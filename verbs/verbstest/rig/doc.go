// SPDX-License-Identifier: Apache-2.0

// Package rig contains the common parts of tests of a provider.Provider: two cards that reach each other, a program's
// objects on each, and common operations.
//
//	Pair (pair.go)  two sessions that no Context has claimed
//	  │ NewWorld
//	  ▼
//	World ──► Station A, Station B      a Context, and one of each object: PD, MR, CQ, QP
//	             │
//	             ├─ queuepair.go, cq.go, srq.go, memory.go, port.go, group.go      the operations and expectations of a station
//	             ├─ peers.go, window.go      connected queue pairs, with regions that the peer can access
//	             └─ notified.go, traffic.go      waiting, and loads
//
// check.go contains comparisons. Waits have a timeout, which only ends a test that hangs. judge.go checks that every
// error of every command is one of package verbs.
//
// Out of scope: the tests themselves, which are in verbstest and its packages ids, hostile and model.
package rig
