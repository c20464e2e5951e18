// SPDX-License-Identifier: Apache-2.0

// Package vm runs throw-away virtual machines: Debian's kernel with Soft-RoCE
// (rdma_rxe) and the tools of rdma-core, or with our own tests.
//
//	this process                        QEMU, in a network namespace
//	Image ── files of Debian packages ──► vmlinux, root.cpio
//	VM.Run ── unix sockets ─────────────► vm-agent, one a port: runs a script
//	Config.Share ── 9p ─────────────────► /host
//	lab.Bridge ── TAP ───────────────► eth0, rxe0
//
// Emulation is in software (TCG), so it works where there is no /dev/kvm; a machine
// boots in about five seconds. It keeps no state, and ends with this process.
//
// The caller of Boot owns the VM and ends it with Close. Run may be called from several goroutines:
// each uses one of the machine's agents while its script runs.
package vm
