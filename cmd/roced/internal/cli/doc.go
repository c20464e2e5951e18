// SPDX-License-Identifier: Apache-2.0

// Package cli implements the parts of a command line that all subcommands share: execution and exit codes
// (run.go), usage errors (usage.go), signals, privileges, a progress line, and number formats. It is
// independent of RDMA.
package cli
