// SPDX-License-Identifier: Apache-2.0

// Package inside provides verbs/kernel, verbs/compat and verbs/cm with access to unexported state of verbs' objects:
// the session of a context, handles, and the state of fast memory regions.
//
//	verbs ── Set ──► Access ◄── Get ── verbs/kernel, verbs/compat, verbs/cm
//
// This package is imported by verbs and cannot name its types, so these are type parameters: each user instantiates
// Access with the same types, and all calls are checked by the compiler.
//
// It is not used on the data path.
package inside
