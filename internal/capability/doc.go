// SPDX-License-Identifier: Apache-2.0

// Package capability reports the capabilities of the calling thread (capabilities(7)).
//
//	capability.BPF.Held()    in effect, also through CAP_SYS_ADMIN
//	capability.BPF.String()  "CAP_BPF", for messages
//
// Out of scope: the capabilities of files and services, which take effect when these are executed, and the
// user namespace of a capability.
package capability
