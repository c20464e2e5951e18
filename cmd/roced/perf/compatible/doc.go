// SPDX-License-Identifier: Apache-2.0

// Package compatible implements the measurements whose peer is one of perftest's programs, or uses their protocol:
//
//	run.go          connects to the peer with the protocol of package perftest
//	datagrams.go    ib_send_bw and ib_send_lat -c UD: send.go, receive.go
//	connections.go  the other programs, and -c RC and UC; package connection runs the measurement
//	watchcard.go    drops a client whose messages only the card receives, and rejects the result of another operation
//	report.go, connectionsreport.go    the results
package compatible
