// Package report is what roced perf prints: the bandwidth (bandwidth.go) and latency (latency.go) that were
// measured, and over which connections (connections.go), as tables (table.go) or JSON. A number that was not
// measured is null, never 0.
package report
