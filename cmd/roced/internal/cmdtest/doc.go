// SPDX-License-Identifier: Apache-2.0

// Package cmdtest runs subcommands for their tests: in the process of the test (roced.go), concurrently with
// the test (background.go), as separate processes (child.go: the test binary again; nobody.go: as an unprivileged
// user), and with peers that are not roced (peer.go).
package cmdtest
