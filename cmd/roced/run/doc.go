// Package run is roced run: the service that owns the devices, and that programs connect to.
//
//	run.go        the command line, and the configuration that it stands for
//	service.go    what there is, and its life: open, listen, ready, loop, stop
//	loop.go       what happens while it runs: signals, changes of state and of links, the watchdog
//	devices.go    the devices, each kept open by a goroutine of its own (device/)
//	listen.go     the sockets: systemd's, or the service's own
//	containers.go the sockets of containers
//	reload.go     SIGHUP: what can be changed is, the rest is named
//	links.go      news of interfaces, for devices that wait for theirs
//	server.go     the server that programs talk to (package verbs/server)
//	loopback.go   --loopback: a network in memory instead (internal/loopback)
//	metered.go    the devices, as metrics see them
//	namespaces/   cards in the network namespaces of programs
//	device/       a card for as long as its interface is there
//	metrics/      metrics for Prometheus, over HTTP
//	systemd/      what is said to systemd, and what comes from it
//
// The loop is one goroutine, which owns the configuration and the set of devices. If the loop stops, nothing tells
// the watchdog that it runs, and systemd ends the process.
//
// Exit codes: 0 after SIGTERM or SIGINT, 1 if something failed, 2 if the command line or the configuration is
// wrong. Starting again helps only after 1.
package run
