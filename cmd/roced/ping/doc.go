// SPDX-License-Identifier: Apache-2.0

// Package ping implements roced ping: it exchanges datagrams one by one with roced ping, or with
// ibv_ud_pingpong of rdma-core.
//
//	command.go ── run.go      exchanges addresses over TCP (package meet) and messages (package pingpong)
//	                id.go         exchanges addresses with connection ids instead (verbs/cm)
//	                totals.go     the output at the end
package ping
