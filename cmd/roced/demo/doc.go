// SPDX-License-Identifier: Apache-2.0

// Package demo implements roced demo: hosts in network namespaces of their own exchange messages, and a table shows
// the result. It needs no setup and leaves nothing behind.
//
//	command.go ── demo.go          two hosts on a veth pair (pair.go), a table of the results (table.go)
//	                │   stream.go      messages one way, as many in flight as a socket holds (window.go), every byte
//	                │                  checked (pattern.go), lost and late ones counted (arrivals.go, outcome.go)
//	                │   mishap.go      messages that must be dropped, by name
//	                │   connection.go  the operations of a reliable connection, and retransmission
//	              group.go         three hosts on a switch (switch.go, station.go), and their table
//	                  grouprun.go      a group that is joined, sent to and left; groupcheck.go checks
//	                  watch.go         counts packets at the switch's ports, including IGMP and MLD
//	              service.go       a service with two programs, on an in-memory network
//	              user.go          all of this without root: in a user namespace, or with
//	              memory.go        hosts on an in-memory network
//
// Everything is removed at the end, even after an error, a signal or a panic. After a kill -9 the namespaces stay;
// the next demo removes them.
package demo
