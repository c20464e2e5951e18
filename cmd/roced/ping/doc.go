// SPDX-License-Identifier: Apache-2.0

// Package ping implements roced ping: it exchanges datagrams one by one with roced ping, or with
// ibv_ud_pingpong of rdma-core.
//
//	command.go ── run.go      meets the peer over TCP (package meet) and exchanges messages (package pingpong)
//	                id.go         meets the peer by connection ids instead (verbs/cm)
//	                totals.go     the output at the end
package ping
