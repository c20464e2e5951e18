// Package own has the measurements whose other end is roced perf too. The client (client.go) says what is measured.
// The server (server.go; session.go serves one client) receives, counts, and sends back (echo.go). pinger.go
// measures latency.
package own
