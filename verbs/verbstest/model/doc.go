// SPDX-License-Identifier: Apache-2.0

// Package model compares a provider.Provider with a model of the specification, by random calls of two programs.
//
//	Run ── lives of a few thousand steps ──► player ── a step ──┬──► the Provider (through package verbs)
//	 │                                     (steps.go)           └──► the model (model.go)
//	 └── a difference: the fewest steps that lead to it (run.go)
//
// The model is cards, queue pairs, CQs, SRQs and regions as the specification has them, without queues in memory, packets
// or time: model.go, state.go, send.go, recv.go, cq.go, srq.go, wr.go; of connections connection.go, which XRC uses too (xrc.go). The player makes
// calls, good and bad, and compares every error, completion, event and byte of memory: player.go, side.go, settle.go, audit.go, and a file
// for each kind of call.
//
// Left out: connection ids, and calls at the same time.
package model
