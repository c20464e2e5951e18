// SPDX-License-Identifier: Apache-2.0

// Package provider declares the commands by which package verbs uses a card. Each command is a value with a request type
// and a grant type, which Do passes to a Provider. Programs do not need this package. It is for code that implements a
// card, or that carries commands from a program to one.
//
//	program ── verbs: Context, PD, QP, … ── Do(CreateQP, …) ──► Provider
//	              │                                               ├─ verbs/hca.Session: a card in this process
//	              │                                               └─ verbs/client.Client: the service, by verbs/proto
//	              └───── queues in memory, from grants (datapath/ring) ─────► the card
//
// All commands are in commands.go. A Provider looks up the function that executes a command in a Table, by the
// command's number, and makes every check. The attributes that programs set and query (QPAttr, AHAttr, PortAttr, …) are
// package ib's.
//
// Out of scope: objects with methods, queues and completions, which are in package verbs; the messages between a client
// and the service, which are in verbs/proto.
package provider
