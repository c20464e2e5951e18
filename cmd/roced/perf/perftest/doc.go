// Package perftest is the TCP protocol of perftest 6.06's ib_send_bw and ib_send_lat: the text of a
// queue pair's address (keys.go), and the sequence of messages before and after the datagrams
// (conversation.go). It sends no datagrams and opens no connection.
package perftest
