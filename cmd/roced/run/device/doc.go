// SPDX-License-Identifier: Apache-2.0

// Package device implements a device of the service: its card is open while the interface exists. The device
// itself is permanent.
//
//	device.go   the interface for the service and clients: name, sessions, state, counters
//	keep.go     opens the card, forwards events, closes it on failure, and reopens it
//	pause.go    time between attempts
//	state.go    status line
//	options.go  conversion of the configuration to options of package hca
//
//	opening ──► open ──► failed ──► waiting ──► opening …
//
// Programs have sessions on the card. When the card fails, its sessions end and programs open new ones.
//
// Each device has one goroutine, which the service starts (Run), and one for events while a card is open. The
// lock protects the state only and is not held during calls.
package device
