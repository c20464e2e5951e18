// SPDX-License-Identifier: Apache-2.0

// Package dra is the driver of roced.dev for dynamic resource allocation. A claim has a socket from its preparation by
// the kubelet until the end of its last pod. Pods that share a claim share the socket, and count as one user.
//
//	kubelet ── dra.sock ── kubeletplugin ── driver ── AddSocket, RemoveSocket ── roced's service
//	                                           └───── a CDI specification for each claim
//
// The names of the socket and of the specification contain all state of a claim, so that the driver can be restarted.
// The node's devices only limit the number of claims: two claims never have the same socket.
package dra
