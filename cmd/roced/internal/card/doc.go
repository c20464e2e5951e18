// SPDX-License-Identifier: Apache-2.0

// Package card opens a card on the interface that a command's flags select, or the device of that name of the
// service, closes it when the command ends or the card fails, and returns its counters by name.
//
//	flags.go (interfaceflags.go, modeflags.go, daemonflags.go: whose card to use)
//	    │
//	    ▼
//	device.go ──┬─ health.go     failures and MTU changes
//	            ├─ gid.go        selection of the source address
//	            ├─ counters.go   counters of the card and the interface
//	            ├─ endpoint.go   package ud's endpoint with explained errors
//	            └─ stream.go     messages over a connection
//
// The package has no locks.
package card
