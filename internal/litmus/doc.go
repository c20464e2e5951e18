// SPDX-License-Identifier: Apache-2.0

// Package litmus explores models of lock-free protocols under the memory model of ARMv8, for tests. A model is a few threads
// of loads and stores. The package performs them in every order that the architecture allows, which tests on amd64 do not
// show, and reports the first fault.
//
//	model (a test)                            memory: one value for each place
//	Thread ── steps, in program order ──────►   ▲
//	  each step is performed once, whenever     │ each load and store has one effect,
//	  no rule below prevents it  ───────────────┘ which all threads see at once
//
//	Plain    LDR, STR    A load may be performed before a preceding If, a store may not. A load returns the value of
//	                     an older store of its thread that is not performed yet.
//	Acquire  LDAPR       performed before all that follows
//	Release  STLR        performed after all that precedes
//	Atomic   LDAR, STLR  likewise, and the LDAR after each STLR that precedes it
//	Fence    DMB         performed after all that precedes, before all that follows
//
// A store follows the loads on which its value depends. Steps on one place stay in order. Go's sync/atomic and C's
// memory_order_seq_cst are Atomic; C's memory_order_acquire is Acquire, since compilers may use LDAPR for it. A
// read-modify-write is an LDAXR and an STLXR, as on processors without LSE: other steps may be performed between the two,
// so it is no fence.
//
// Check explores models and their mutants, in each of which one access is weaker or one fence is missing. The model must
// have no fault, and each mutant must have one, except those that the test lists as harmless.
//
// Out of scope: addresses that depend on loads, accesses of different sizes to one place, and loops, which a
// test unrolls.
package litmus
