// Package report is what roced perf prints: what was measured of bandwidth (bandwidth.go) and of latency (latency.go),
// and over which connections (connections.go), as tables (table.go) or JSON. A number that was not measured is null, and
// never 0.
package report
