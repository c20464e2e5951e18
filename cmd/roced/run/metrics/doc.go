// Package metrics are the service's metrics for Prometheus, over HTTP at /metrics.
//
//	names.go      every metric: name, help, labels
//	collector.go  where their values come from, at each scrape
//	limit.go      the connections: how many, which are replaced, and for which host names
//	server.go     HTTP, on sockets of systemd's and one of the service's own
//
// The metrics are documented in docs/METRICS.md. A test compares that with names.go, and another test does so with
// the dashboard beside it. Labels are devices and the counters' names, both of which are few; never users,
// programs, queue pairs, groups or addresses.
package metrics
