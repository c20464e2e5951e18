// Package options is roced perf's flags, what they may be together, and what follows from them: of datagrams, of
// connections (connection.go), and those that --perftest has (perftest.go).
package options
