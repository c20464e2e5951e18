// Package daemon asks the service what it has: its devices, its clients and their objects, and its counters (the
// commands of verbs/proto's look.go). Anyone who may use the socket may ask; root and the service's own user see
// everything, others what is theirs.
//
//	flags.go ──► connection.go ──┬─ list.go     clients and objects, page by page
//	                             └─ device.go   what a device is, as a program sees it
package daemon
