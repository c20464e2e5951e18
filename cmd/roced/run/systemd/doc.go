// SPDX-License-Identifier: Apache-2.0

// Package systemd communicates with systemd (sd_notify(3), sd_listen_fds(3), systemd.exec(5)):
//
//	notify.go    readiness, reloading, stopping, status line, watchdog
//	sockets.go   sockets bound by systemd
//	journal.go   log lines with priority
//
// Without systemd it does nothing.
package systemd
