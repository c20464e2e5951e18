// Command roced is software RoCEv2 for any Linux network card. See "roced help".
//
//	main.go ── signals, log, exit code
//	  │
//	  ├─ demo.go        two hosts in this process, a table of what happened
//	  │   ├ lab.go          namespaces, veth pair, devices: built and removed
//	  │   ├ stream.go       messages one way, every byte checked (pattern.go)
//	  │   ├ mishap.go       messages that must be dropped, by name
//	  │   └ demogroup.go    three hosts on a switch.go, groups joined and sent to (grouprun.go)
//	  │       └ watch.go        what passes the switch's ports, IGMP and MLD too
//	  │
//	  ├─ mcast.go       a member of a group, that receives or sends (member.go)
//	  ├─ perf.go        bandwidth and latency between two hosts
//	  │   ├ server.go ◄─── TCP ───► client.go
//	  │   │   exchange.go       who are you: ibv_ud_pingpong's text
//	  │   │   control.go        then JSON lines on the same connection (protocol.go)
//	  │   ├ bandwidth.go, latency.go
//	  │   └ perftestrun.go, perftestmeasure.go   with ib_send_bw or ib_send_lat, in their words (perftest.go)
//	  ├─ ping.go        there and back, as ibv_ud_pingpong does (pingrun.go, pingpong.go)
//	  │       │
//	  │   device.go, endpoint.go   a card, and a UD queue pair with all it needs (queues.go): used by all
//	  │   health.go                a device that fails ends the command; what is told of an MTU that changes
//	  │   counters.go              where a device's packets went, by name
//	  │
//	  └─ show.go        the GID table of an interface; opens nothing
//
// The commands own what they open, and close it in reverse order whatever happens:
// an error, a signal (which cancels the context that main makes) or a panic. A
// kill -9 leaves the demo's namespaces behind; the next demo removes them.
//
// Everything runs on the caller's goroutine, but for the devices' workers, the
// reader of a device's events, that of a control connection, and the line that shows
// progress. There are no locks here.
//
// Left out as yet: the daemon (roced run), and what shows its state: roced show knows GIDs only.
package main
