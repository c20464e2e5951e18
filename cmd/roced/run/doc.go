// SPDX-License-Identifier: Apache-2.0

// Package run implements roced run: the service that owns the devices and that programs connect to.
//
//	run.go        the command line and the resulting configuration
//	service.go    the service and its phases: open, listen, ready, loop, stop
//	loop.go       the main loop: signals, state and link changes, the watchdog
//	devices.go    the devices, each kept open by its own goroutine (device/)
//	listen.go     sockets created by the service
//	containers.go the sockets of containers
//	reload.go     SIGHUP: reloads the configuration
//	links.go      interface notifications, for devices that wait for their interface
//	server.go     the server for programs (package verbs/server)
//	loopback.go   --loopback: an in-memory network (internal/loopback)
//	metered.go    adapters of devices for metrics
//	namespaces/   cards in the network namespaces of programs
//	device/       a card, open while its interface exists
//	metrics/      metrics for Prometheus, over HTTP
//	systemd/      communication with systemd
//
// The loop is one goroutine, which owns the configuration and the set of devices. If the loop hangs, the
// watchdog is not reset, and systemd kills the process.
//
// Exit codes: 0 after SIGTERM or SIGINT, 1 after a failure, 2 for an invalid command line or configuration.
// Restarting helps only after 1.
package run
