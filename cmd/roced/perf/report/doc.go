// SPDX-License-Identifier: Apache-2.0

// Package report prints the results of roced perf: bandwidth (bandwidth.go), latency (latency.go) and the
// connections used (connections.go), as tables (table.go) or JSON. A number that was not measured is null,
// never 0.
package report
