// SPDX-License-Identifier: Apache-2.0

// Package rig is what tests of a provider.Provider share: two cards that reach each other, a program's objects on
// each, and what tests do with them again and again.
//
//	Pair (pair.go)  two sessions that no Context has claimed
//	  │ NewWorld
//	  ▼
//	World ──► Station A, Station B      a Context, and one of each object: PD, MR, CQ, QP
//	             │
//	             ├─ queuepair.go, cq.go, srq.go, memory.go, port.go, group.go      the operations and expectations of a station
//	             ├─ peers.go, window.go      connected queue pairs, with regions that the peer may use
//	             └─ notified.go, traffic.go      waiting, and loads
//
// check.go has the comparisons; a wait in it has a limit, which is there only to end a test that hangs. judge.go checks
// that every error of every command is one of package verbs.
//
// Out of scope: the promises of a Provider. They are in verbstest, and in its packages ids, hostile and model.
package rig
