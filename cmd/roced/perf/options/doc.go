// Package options is roced perf's flags, which of them go together, and what follows from them: the flags of
// datagrams, of connections (connection.go), and of --perftest (perftest.go).
package options
