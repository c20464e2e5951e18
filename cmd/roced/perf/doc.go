// SPDX-License-Identifier: Apache-2.0

// Package perf implements roced perf: bandwidth and latency of datagrams and connections between two hosts.
//
//	command.go ──┬─► own ──────────► protocol       the peer is roced perf
//	             ├─► compatible ───► perftest       the peer is one of perftest's programs, or uses their protocol
//	             │        └────────► connection     queue pairs (RC, UC) and the measurements on them
//	             └─► options, traffic, report       flags; sending and counting datagrams; output
//
// The control connection has a goroutine that reads it, and so has the progress line; everything else runs on
// the caller's goroutine. A number that was not measured is null, never 0.
package perf
