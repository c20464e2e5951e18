// SPDX-License-Identifier: Apache-2.0

// Package mcast implements roced mcast: a group member that receives or sends, like mckey of rdma-core.
//
//	command.go (flag.go) ── member.go ──┬─ receive.go   receives messages
//	                        (id.go)     │
//	                                    ├─ send.go      sends at a rate, and receives
//	                                    └─ print.go     prints (report.go: text and JSON)
//
// All code runs on the caller's goroutine.
package mcast
