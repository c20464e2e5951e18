// Package perftest is the TCP protocol of perftest 6.06's programs, ib_send_bw, ib_write_lat and so on: the
// text of a queue pair's address (keys.go), the sequence of messages before and after what is measured
// (conversation.go), and the result that a client tells (result.go). It measures nothing and opens no
// connection.
package perftest
