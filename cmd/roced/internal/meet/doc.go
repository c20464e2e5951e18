// Package meet connects two commands before they can send datagrams: over a TCP connection they
// exchange the addresses of their queue pairs.
//
//	tcp.go            listen and dial inside a network namespace
//	control.go        the connection; a context ends with it
//	  exchange.go       the exchange of addresses, as ibv_ud_pingpong's (destination.go)
//	  lines.go          lines of JSON after that, between two of our own
//	printable.go      how to show what a peer says: it is not trusted
package meet
