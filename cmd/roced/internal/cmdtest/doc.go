// Package cmdtest runs subcommands for their tests: in the test's process (roced.go), beside the
// test (background.go), as a process of its own (child.go: the test's binary again; nobody.go:
// as an ordinary user), and
// with peers that are not roced (peer.go).
package cmdtest
