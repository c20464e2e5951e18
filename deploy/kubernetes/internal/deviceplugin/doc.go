// SPDX-License-Identifier: Apache-2.0

// Package deviceplugin is the device plugin of roced.dev/verbs: it reports to the kubelet the number of sockets that
// the node has for containers, and creates the socket of each container that requests one.
//
//	run.go        registration, repeated after a restart of the kubelet
//	plugin.go     requests of the kubelet: list, allocation, preparation of a start
//	health.go     whether the service responds
//
//	kubelet ── roced.sock ── Plugin ── AddSocket, RemoveSocket ── roced's service
//
// The kubelet's device, the service's socket and the CDI device have the same name. The kubelet does not report the end
// of a container. So its socket remains until the device is allocated again: then the old socket, its folder and its
// connections are removed, and a new socket is created. Until then the old socket is unreachable, since it was mounted
// only in that container. There are never more sockets than devices.
package deviceplugin
