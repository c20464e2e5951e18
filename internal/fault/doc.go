// Package fault contains panics: mistakes of roced's own, which some program or packet has found. Where the work of
// one program is being done, a mistake should cost that program's session, and not the service.
//
//	who does the work of one session                      fault.Contain ─► *Fault: cause and stack
//	(a command, a step of the connection manager)              │
//	                                                           ▼
//	                                  hca.Session.Faulted: flushed, DEVICE_FATAL, logged, counted
//
// The engine's rounds contain theirs themselves (datapath), since they know whose work is being done. Some failures
// cannot be contained, since the runtime ends the process for them: memory that has run out, maps that are written
// at once, a deadlock.
package fault
