// Package systemd is what the service says to systemd, and gets from it (sd_notify(3), sd_listen_fds(3),
// systemd.exec(5)):
//
//	notify.go    ready, reloading, stopping, a line of status, the watchdog
//	sockets.go   sockets that systemd has bound
//	journal.go   lines of log with their priority
//
// Without systemd all of it does nothing.
package systemd
