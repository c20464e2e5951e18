// Package perf is roced perf: bandwidth and latency of datagrams and connections between two hosts.
//
//	command.go (options.go)
//	  ├─ client.go   asks (protocol.go)           server.go   answers: a session.go a client
//	  │    claims.go     doubts the answers           watch.go      gives up a silent one
//	  │    send.go       bandwidth                    arrivals.go   counts
//	  │    pinger.go     latency                      echo.go       sends back
//	  ├─ perftestrun.go     the peer is one of perftest's programs, whose words package perftest has
//	  │    datagrams.go (perftestsend.go, perftestreceive.go)     ib_send_bw and ib_send_lat -c UD
//	  │    connections.go     the others, and -c RC and UC; package connection does what is measured
//	  └─ report.go   what is printed: of bandwidthresult.go and latencyresult.go, which are measured
//
// A reader of the control connection and the line that shows progress have goroutines; all
// else runs on the caller's. A number that was not measured is null, and never 0.
package perf
