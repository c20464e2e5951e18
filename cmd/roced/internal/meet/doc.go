// Package meet is how two commands find each other before they can send datagrams: a TCP
// connection, over which they tell each other their queue pairs.
//
//	tcp.go            listen and dial inside a network namespace
//	control.go        the connection; a context ends with it
//	  exchange.go       who are you: ibv_ud_pingpong's words (destination.go)
//	  lines.go          lines of JSON after that, between two of our own
package meet
