// SPDX-License-Identifier: Apache-2.0

// Package metrics serves the metrics for Prometheus over HTTP at /metrics.
//
//	names.go      every metric: name, help, labels
//	collector.go  reads the values at each scrape
//	limit.go      limits connections and host names
//	server.go     HTTP server, on systemd's sockets and one of its own
//
// docs/METRICS.md documents the metrics; tests compare it and the dashboard with names.go. Label values
// are few: devices, places, counters, reasons, directions, kinds and the version; never users, programs, queue pairs,
// groups or addresses.
package metrics
