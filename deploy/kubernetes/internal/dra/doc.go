// SPDX-License-Identifier: Apache-2.0

// Package dra is the driver of roced.dev for dynamic resource allocation: a socket for each claim, from when the
// kubelet prepares the claim until its last user has ended. Pods that share a claim share the socket, and count as one
// user.
//
//	kubelet ── dra.sock ── kubeletplugin ── driver ── AddSocket, RemoveSocket ── roced's service
//	                                           └───── a CDI specification for each claim
//
// The driver keeps all state of a claim in the names of the socket and of the specification, so a restart loses
// nothing. The node's devices only limit the number of claims: two claims never have the same socket.
package dra
