// SPDX-License-Identifier: Apache-2.0

// Package harness measures and compares variants. It contains the common parts of the benchmarks.
//
//	Measurements ── Run: parts ── InTurns: the variants in several rounds ── Record ──► table (report.go)
//	      │                                      │                                       └───► bench.json (file.go)
//	      │                                      ▼
//	      └── a Job ──► Start ── child process ── Serve ── its role (a function) ── Announce, Stopping ──► Result
//
// A child receives its job as an argument. It prints an Endpoint when it is ready, and a Result at the end of the job
// or of its standard input. Figures are medians of rounds. Ratios are medians of the ratios of each round, since two
// measurements within a second or two are more comparable on a noisy machine.
//
// Out of scope: the measurements themselves.
package harness
