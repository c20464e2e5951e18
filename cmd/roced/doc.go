// SPDX-License-Identifier: Apache-2.0

// Command roced implements RoCEv2 in software for any Linux NIC. See "roced help".
//
//	main.go     the list of subcommands
//	  cdi/        device specifications for container engines
//	  config/     check of a configuration file; an example
//	  demo/       demonstration with hosts in network namespaces
//	  doctor/     checks of this host, with remedies
//	  dump/       packets of a device, as pcapng
//	  exec/       runs an unmodified RDMA program over roced
//	  man/        shows or writes the manual pages
//	  mcast/      receives from or sends to a multicast group
//	  monitor/    prints events of the service
//	  netdev/     a network interface that carries IP packets over a card
//	  perf/       bandwidth and latency between two hosts; also with ib_send_bw and ib_send_lat
//	  ping/       round trips, as ibv_ud_pingpong
//	  run/        the service, whose devices programs share
//	  show/       objects of the service; the GID table of an interface
//	  socket/     sockets of the service for containers
//	  version/    the version
//	internal/   packages shared by subcommands
//	  cli/        command line: flags, exit codes, signals, privileges, number formats
//	  config/     the service's configuration: strict TOML
//	  manual/     manual pages, generated from the commands
//	  card/       a card with its counters, and endpoints of package ud on it
//	  daemon/     queries of the service: devices, clients, objects
//	  libraries/  location of the C libraries
//	  loopback/   an in-memory network on which each program is a host
//	  meet/       exchange of queue pair addresses over a TCP connection
//	  pingpong/   round trips, one message at a time
//	  record/     recording of several cards in one file
//
// Subcommands do not import each other. A command closes its resources in reverse order after an error, a
// signal (which cancels its context) or a panic.
//
// Commands run on the caller's goroutine. Other goroutines are the cards' workers, the readers of a card's
// events and of a control connection, and the progress line. The commands have no locks.
//
// Out of scope: commands that change a running device. A device is defined by its file or its flags.
package main
