// Package demo is roced demo: hosts in network namespaces of their own exchange messages, and a
// table says what happened. It needs no set-up and leaves nothing behind.
//
//	command.go ── demo.go          two hosts on a veth pair (pair.go), a table of what happened (table.go)
//	                │   stream.go      messages one way, as many in flight as a socket holds (window.go), every byte
//	                │                  checked (pattern.go), lost and late ones counted (arrivals.go, outcome.go)
//	                │   mishap.go      messages that must be dropped, by name
//	                │   connection.go  what a reliable connection can do, and sends again
//	              group.go         three hosts on a switch (switch.go, station.go), and their table
//	                  grouprun.go      a group that is joined, sent to and left; groupcheck.go checks
//	                  watch.go         counts what passes the switch's ports, IGMP and MLD too
//	              service.go       a service with two programs, on a network in memory
//	              user.go          all of this without root: in a user namespace, or with
//	              memory.go        hosts on a network in memory
//
// Everything is removed at the end, also after an error, a signal or a panic. After a kill -9 the
// namespaces stay; the next demo removes them.
package demo
