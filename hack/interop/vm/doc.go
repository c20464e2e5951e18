// SPDX-License-Identifier: Apache-2.0

// Package vm runs temporary virtual machines with Debian's kernel, Soft-RoCE (rdma_rxe) and the tools of rdma-core, or
// with this module's tests.
//
//	this process                        QEMU, in a network namespace
//	Image ── files of Debian packages ──► vmlinux, root.cpio
//	VM.Run ── unix sockets ─────────────► vm-agent, one per port: runs a script
//	Config.Share ── 9p ─────────────────► /host
//	lab.Bridge ── TAP ──────────────────► eth0, rxe0
//
// Emulation is in software (TCG), so /dev/kvm is not required. A machine boots in about five seconds. It has no
// persistent state, and ends with this process.
//
// The caller of Boot owns the VM and must call Close. Run can be called from several goroutines: each uses one of the
// machine's agents while its script runs.
package vm
