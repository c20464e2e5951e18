// Package capability says what the calling thread may do: capabilities(7).
//
//	capability.BPF.Held()    in effect, by itself or as a part of CAP_SYS_ADMIN
//	capability.BPF.String()  "CAP_BPF", for messages
//
// What is left out is what a file or a service is granted, which shows when it runs, and the
// user namespace that a capability is in.
package capability
