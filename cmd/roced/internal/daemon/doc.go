// SPDX-License-Identifier: Apache-2.0

// Package daemon queries the service for its devices, clients, objects and counters (the commands of
// verbs/proto's look.go). Every user with access to the socket can query. Root and the user of the service
// see all objects, other users only their own.
//
//	flags.go ──► connection.go ──┬─ list.go     clients and objects, page by page
//	                             └─ device.go   attributes of a device, as programs see them
package daemon
