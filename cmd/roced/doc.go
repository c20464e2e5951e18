// Command roced is software RoCEv2 for any Linux NIC. See "roced help".
//
//	main.go     which subcommand is which package, and what each is given
//	  cdi/        what container engines need to pass a socket of the service on
//	  config/     mistakes in a configuration file of the service; an example of one
//	  demo/       hosts in network namespaces, a table of what happened
//	  doctor/     what keeps RoCEv2 from working on this host, and what to do
//	  dump/       packets that XDP steers away from tcpdump, and those sent, as pcapng
//	  exec/       an RDMA program in C over roced, unchanged
//	  man/        the manual pages, shown, or written for packagers
//	  mcast/      a member of a group, which receives or sends
//	  monitor/    what happens at the service, as it happens
//	  netdev/     an interface of the host whose IP packets travel over a card
//	  perf/       bandwidth and latency between two hosts; also with ib_send_bw and ib_send_lat
//	  ping/       there and back, as ibv_ud_pingpong does
//	  run/        the service: devices that programs share
//	  show/       what the service has; the GID table of an interface, which opens nothing
//	  socket/     sockets of the service for containers
//	  version/
//	internal/   packages that several subcommands use
//	  cli/        a command line: flags, exit codes, signals, privileges, numbers as text
//	  config/     the service's configuration: strict TOML
//	  manual/     manual pages, from what the commands say
//	  card/       a card, its failure and counters, and endpoints of package ud on it
//	  daemon/     what the service says of its devices, clients and objects
//	  libraries/  where programs find roced's C libraries
//	  loopback/   a network in memory, of which each program is a host
//	  meet/       a TCP connection on which two sides exchange the addresses of their queue pairs
//	  pingpong/   messages there and back, one at a time
//	  record/     the packets of several cards in one file
//
// A subcommand imports no other. A command closes what it has opened, in reverse order, after an
// error, a signal (which cancels its context) or a panic.
//
// Everything runs on the caller's goroutine, except the cards' workers, the readers of a card's
// events and of a control connection, and the progress line. There are no locks here.
//
// Left out: commands that change a device while it runs; a device is what its file or its flags say.
package main
