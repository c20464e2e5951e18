// Package perf is roced perf: bandwidth and latency of datagrams and connections between two hosts.
//
//	command.go ──┬─► own ──────────► protocol       the other end is roced perf
//	             ├─► compatible ───► perftest       it is one of perftest's programs, or speaks as they do
//	             │        └────────► connection     queue pairs (RC, UC), and what is measured with them
//	             └─► options, traffic, report       flags; sending and counting datagrams; what is printed
//
// The reader of the control connection has a goroutine, and so has the line that shows progress; everything else
// runs on the caller's. A number that was not measured is null, never 0.
package perf
