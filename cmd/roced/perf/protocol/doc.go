// Package protocol is what two roced perf say to each other, a JSON object a line (protocol.go), and what of the other
// end's words is not believed (claims.go).
package protocol
