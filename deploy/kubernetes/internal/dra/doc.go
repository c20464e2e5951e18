// Package dra is the driver of roced.dev for dynamic resource allocation: a socket for each claim, from when the kubelet
// prepares the claim until its last user has ended. Pods that share a claim share the socket, and count as one user.
//
//	kubelet ── dra.sock ── kubeletplugin ── driver ── AddSocket, RemoveSocket ── roced's service
//	                                           └───── a CDI specification for each claim
//
// What the driver knows of a claim is in the socket's name and the specification's, so nothing is lost with it. The
// node's devices only count how many claims there may be: two claims never have one socket.
package dra
