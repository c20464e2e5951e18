// SPDX-License-Identifier: Apache-2.0

// Package model compares a provider.Provider with a model of the specification, using random calls of two programs.
//
//	Run ── lives of a few thousand steps ──► player ── a step ──┬──► the Provider (through package verbs)
//	 │                                     (steps.go)           └──► the model (model.go)
//	 └── a difference: the fewest steps that lead to it (run.go)
//
// The model consists of cards, queue pairs, CQs, SRQs and regions as in the specification, without queues in shared
// memory, packets or time: model.go, state.go, send.go, recv.go, cq.go, srq.go and wr.go. connection.go models
// connections, also those of XRC (xrc.go). The player makes valid and invalid calls, and compares every error,
// completion, event and byte of memory: player.go, side.go, finish.go, audit.go, and a file for each kind of call.
//
// Out of scope: connection ids and concurrent calls.
package model
