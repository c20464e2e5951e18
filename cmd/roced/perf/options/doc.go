// SPDX-License-Identifier: Apache-2.0

// Package options defines and checks the flags of roced perf: for datagrams, for connections (connection.go)
// and for --perftest (perftest.go). It also derives the list of tests.
package options
