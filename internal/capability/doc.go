// Package capability says which capabilities the calling thread has (capabilities(7)).
//
//	capability.BPF.Held()    in effect, itself or included in CAP_SYS_ADMIN
//	capability.BPF.String()  "CAP_BPF", for messages
//
// Left out: the capabilities of files and services, which take effect when these run, and the user
// namespace of a capability.
package capability
