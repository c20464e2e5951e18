// Package perftest is what ib_send_bw and ib_send_lat of perftest 6.06 tell each other over
// TCP before and after their datagrams: the text of a queue pair (keys.go), and who says what
// when (conversation.go). It sends no datagrams and opens no connection.
package perftest
