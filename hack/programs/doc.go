// SPDX-License-Identifier: Apache-2.0

// Command programs runs unmodified RDMA programs of Debian over roced as user nobody, and prints a line per case.
//
//	server program ── libibverbs.so.1, librdmacm.so.1 ── a service ──┐
//	                                                                 │ network.go: in memory (one service),
//	                                                                 │ or two namespaces, over UDP sockets
//	client program ── libibverbs.so.1, librdmacm.so.1 ── a service ──┘
//
// With -peer one of the two runs in a virtual machine (hack/interop/vm) over Linux's Soft-RoCE (peer.go). With -speed
// no case runs, and C programs are compared with the Go client (speed.go).
//
// The programs come from Debian packages, which are downloaded and unpacked to a cache without installing them
// (packages.go). The libraries are built from verbs/c (bench.go). The cases are tables (cases*.go), and case.go runs
// them. docs/PROGRAMS.md contains the results.
//
// It requires root (for namespaces and to run programs as nobody), gcc, make, curl and openssl.
package main
