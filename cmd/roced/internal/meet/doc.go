// SPDX-License-Identifier: Apache-2.0

// Package meet connects two commands before they can send datagrams: they exchange the addresses of their
// queue pairs over a TCP connection.
//
//	tcp.go            listen and dial in a network namespace
//	control.go        the connection; a context ends with it
//	  exchange.go       the exchange of addresses, as in ibv_ud_pingpong (destination.go)
//	  lines.go          the exchange of lines of JSON between two roced commands
//	printable.go      safe output of text from peers, which are not trusted
package meet
