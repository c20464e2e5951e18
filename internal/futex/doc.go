// SPDX-License-Identifier: Apache-2.0

// Package futex wakes threads that sleep on a word of memory (futex(2), FUTEX_WAIT without
// FUTEX_PRIVATE_FLAG), in this process or in others that share the memory.
//
// Out of scope: sleeping. Go threads sleep in the runtime.
package futex
