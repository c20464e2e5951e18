// Package mcast is roced mcast: a member of a group that receives or sends, as mckey of rdma-core.
//
//	command.go (flag.go) ── member.go ──┬─ receive.go   takes what comes
//	                        (id.go)     │
//	                                    ├─ send.go      at a rate, and takes what comes meanwhile
//	                                    └─ print.go     says it (report.go: as text, and as JSON)
//
// Everything runs on the caller's goroutine.
package mcast
