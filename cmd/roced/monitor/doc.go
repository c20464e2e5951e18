// Package monitor is roced monitor: what happens at the service, as it happens.
//
//	monitor.go   the command line; asks the service again and again
//	event.go     an event as a line, or in JSON
package monitor
