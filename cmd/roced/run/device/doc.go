// Package device is a device of the service: a card on an interface for as long as the interface is
// there. The device itself stays.
//
//	device.go   what the service and its clients see: name, sessions, state, counters
//	keep.go     the card is opened, followed, closed when it fails, and opened again
//	pause.go    how long it waits in between
//	state.go    a line of what there is now
//	options.go  the configuration as options of package hca
//
//	opening ──► open ──► failed ──► waiting ──► opening …
//
// Programs have sessions on the card. When the card fails its sessions end with it, and a program asks for a new
// one.
//
// Each device has one goroutine, which the service starts (Run), and one beside an open card for its events. The
// lock is for the state alone, and is held over no call.
package device
