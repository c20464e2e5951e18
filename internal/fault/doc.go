// SPDX-License-Identifier: Apache-2.0

// Package fault contains panics: bugs in roced that a program or packet triggers. While roced works for one
// program, a bug should end that program's session, not the service.
//
//	work for one session                                   fault.Contain ─► *Fault: cause and stack
//	(a command, a step of the connection manager)              │
//	                                                           ▼
//	                                  hca.Session.Faulted: flushed, DEVICE_FATAL, logged, counted
//
// The rounds of the engine contain their panics themselves (datapath), because they know the session.
// Failures for which the runtime ends the process cannot be contained: out of memory, concurrent map writes,
// deadlocks.
package fault
