// SPDX-License-Identifier: Apache-2.0

// Command programs runs unmodified RDMA programs of Debian over roced, as user nobody, and prints a line a case.
//
//	server program ── libibverbs.so.1, librdmacm.so.1 ── a service ──┐
//	                                                                 │ network.go: in memory (one service),
//	                                                                 │ or two namespaces, over UDP sockets
//	client program ── libibverbs.so.1, librdmacm.so.1 ── a service ──┘
//
// With -peer one of the two is inside a virtual machine (hack/interop/vm), over Linux's Soft-RoCE (peer.go).
// With -speed no case runs, and programs in C are measured beside the client in Go (speed.go).
//
// The programs come from Debian's packages, which are downloaded and unpacked into a cache, and not installed
// (packages.go). The libraries are built from verbs/c (bench.go). What is run is a table (cases.go), of which case.go
// runs a line. docs/PROGRAMS.md says what came of it.
//
// Needs root, for namespaces and to become nobody; gcc and make; curl and openssl.
package main
