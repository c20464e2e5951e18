// SPDX-License-Identifier: Apache-2.0

// Package monitor implements roced monitor, which prints events of the service.
//
//	monitor.go   the command line; reads events of the service
//	event.go     an event as a line or JSON
package monitor
