// SPDX-License-Identifier: Apache-2.0

// Package own implements the measurements between two roced perf. The client (client.go) chooses the tests. The
// server (server.go; one session.go per client) receives, counts, and echoes (echo.go). pinger.go measures latency.
package own
