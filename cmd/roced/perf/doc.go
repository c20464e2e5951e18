// Package perf is roced perf: bandwidth and latency of datagrams and connections between two hosts.
//
//	command.go ──┬─► own ──────────► protocol       the other end is roced perf
//	             ├─► compatible ───► perftest       it is one of perftest's programs, or speaks as they do
//	             │        └────────► connection     queue pairs (RC, UC), and what is measured with them
//	             └─► options, traffic, report       flags; sending and counting datagrams; what is printed
//
// A reader of the control connection and the line that shows progress have goroutines; all
// else runs on the caller's. A number that was not measured is null, and never 0.
package perf
