// SPDX-License-Identifier: Apache-2.0

// Package harness measures variants beside each other: what the bench's traffics share.
//
//	Measurements ── Run: parts ── InTurns: the variants in turns, several rounds ── Record ──► table (report.go)
//	      │                                      │                                       └───► bench.json (file.go)
//	      │                                      ▼
//	      └── a Job ──► Start ── child process ── Serve ── its role (a function) ── Announce, Stopping ──► Result
//
// A child receives its job in its arguments. It prints an Endpoint when it is ready, and a Result when it is done:
// after its job, or when its standard input ends. Figures are medians of rounds, and each ratio is that of one
// round: machines are noisy, and two measurements taken within a second or two are more alike than medians of all
// rounds.
//
// Left out: what is measured.
package harness
