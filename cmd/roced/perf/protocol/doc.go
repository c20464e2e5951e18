// Package protocol is what two roced perf say to each other, one JSON object a line (protocol.go), and which of the
// other end's words are not believed (claims.go).
package protocol
