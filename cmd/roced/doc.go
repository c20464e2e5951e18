// Command roced is software RoCEv2 for any Linux NIC. See "roced help".
//
//	main.go     which subcommand is which package, and what each is given
//	  demo/       two hosts in this process, a table of what happened
//	  mcast/      a member of a group, that receives or sends
//	  perf/       bandwidth and latency between two hosts; also with ib_send_bw and ib_send_lat
//	  ping/       there and back, as ibv_ud_pingpong does
//	  show/       the GID table of an interface; opens nothing
//	  version/
//	internal/   packages that several subcommands use
//	  cli/        a command line: flags, exit codes, signals, privileges, numbers as text
//	  card/       a card, its failure and counters, and endpoints of package ud on it
//	  meet/       a TCP connection on which two sides exchange the addresses of their queue pairs
//	  pingpong/   messages there and back, one at a time
//
// A subcommand imports no other. A command closes what it has opened, in reverse order, after an
// error, a signal (which cancels its context) or a panic.
//
// Everything runs on the caller's goroutine, except the cards' workers, the readers of a card's
// events and of a control connection, and the progress line. There are no locks here.
//
// Left out as yet: the daemon (roced run) and commands that show its state; roced show has only GIDs.
package main
