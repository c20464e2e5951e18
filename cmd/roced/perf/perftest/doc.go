// SPDX-License-Identifier: Apache-2.0

// Package perftest implements the TCP protocol of perftest 6.06's programs, ib_send_bw, ib_write_lat and so
// on: the text of a queue pair's address (keys.go), the messages before and after the measurement
// (conversation.go), and the client's result (result.go). It does not measure and opens no connections.
package perftest
