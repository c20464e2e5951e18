// SPDX-License-Identifier: Apache-2.0

// Package suite builds the tests of this module's packages as binaries and runs them in virtual machines.
//
//	suite.go     Suite; Build ── a binary per package in a folder ── 9p ──► /host
//	calls.go     Suite.KernelCalls ── the functions in the binary that can differ between kernels
//	result.go    Suite.Test ── VM.Run ──► Result: the tests that passed, were skipped or failed
package suite
