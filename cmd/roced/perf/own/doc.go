// Package own is measurements whose other end is roced perf too: the client (client.go) says what is measured, and the
// server (server.go, a session.go a client) receives, counts, and sends back (echo.go). pinger.go measures latency.
package own
