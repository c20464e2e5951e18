// Package compatible has the measurements whose other end is one of perftest's programs, or speaks as they do:
//
//	run.go          meets the other end, with the words of package perftest
//	datagrams.go    ib_send_bw and ib_send_lat -c UD: send.go, receive.go
//	connections.go  the others, and -c RC and UC; package connection does what is measured
//	watchcard.go    gives up a client whose messages the card alone receives, and rejects another operation's result
//	report.go, connectionsreport.go    what is known of it
package compatible
