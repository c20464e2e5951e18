// Package perf is roced perf: bandwidth and latency of datagrams between two hosts.
//
//	command.go (options.go)
//	  ├─ client.go   asks (protocol.go)           server.go   answers: a session.go a client
//	  │    claims.go     doubts the answers           watch.go      gives up a silent one
//	  │    send.go       bandwidth                    arrivals.go   counts
//	  │    pinger.go     latency                      echo.go       sends back
//	  ├─ perftestrun.go     the peer is ib_send_bw or ib_send_lat; package perftest has their words,
//	  │    perftestsend.go, perftestreceive.go        package pingpong their way of latency
//	  └─ report.go   what is printed: of bandwidthresult.go and latencyresult.go, which are measured
//
// A reader of the control connection and the line that shows progress have goroutines; all
// else runs on the caller's. A number that was not measured is null, and never 0.
package perf
