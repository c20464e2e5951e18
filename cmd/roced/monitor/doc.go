// Package monitor is roced monitor: what happens at the daemon, as it happens.
//
//	monitor.go   the command line; asks the daemon again and again
//	event.go     an event as a line, or in JSON
package monitor
