// SPDX-License-Identifier: Apache-2.0

// Package protocol defines the messages between two roced perf, one JSON object per line (protocol.go), and
// validates those of the peer (claims.go).
package protocol
