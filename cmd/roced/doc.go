// Command roced is software RoCEv2 for any Linux network card. See "roced help".
//
//	main.go     which subcommand is which package, and what each is given
//	  demo/       two hosts in this process, a table of what happened
//	  mcast/      a member of a group, that receives or sends
//	  perf/       bandwidth and latency between two hosts; also with ib_send_bw and ib_send_lat
//	  ping/       there and back, as ibv_ud_pingpong does
//	  show/       the GID table of an interface; opens nothing
//	  version/
//	internal/   what several of them need
//	  cli/        a command line: flags, exit codes, signals, privileges, numbers as text
//	  card/       a device, its health and counters, and endpoints of package ud on it
//	  meet/       a TCP connection on which two sides tell each other their queue pairs
//	  pingpong/   messages there and back, one at a time
//
// A subcommand imports no other. The commands own what they open, and close it in reverse
// order whatever happens: an error, a signal (which cancels the context that they are given) or a panic.
//
// Everything runs on the caller's goroutine, but for the devices' workers, the
// reader of a device's events, that of a control connection, and the line that shows
// progress. There are no locks here.
//
// Left out as yet: the daemon (roced run), and what shows its state: roced show knows GIDs only.
package main
