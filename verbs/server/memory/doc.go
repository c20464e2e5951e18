// SPDX-License-Identifier: Apache-2.0

// Package memory is the memory that programs share with the service: each session's arena, each process's own file, and
// the files that programs pass.
//
//	Manager ──┬── Session ──┬── Arena: queues, and regions that the service allocates
//	          │             ├── file: the process file ─────── windows ── regions
//	          │             └── files that were passed ─────── windows ── regions
//	          ├── arenaWatch and files: check sizes ten times a second
//	          └── barred: users that open no sessions, or share no memory, for a minute
//
// # Arenas
//
// A session has one memfd, sealed against shrinking and growing. Most of it is never touched and takes no memory. Pages are
// made when a piece is allocated (MADV_POPULATE_WRITE), so that the card never waits for a page that cannot be had, and are
// zeroed when they are used again. No two sessions share a memfd, so no session sees the memory of another, live or stale.
// A session whose program removes pages from it ends (arenawatch.go). The pages of a session that has ended return to the
// kernel (MADV_REMOVE), also if the client keeps them mapped.
//
// # Memory of the program's own
//
// A process has one sparse memfd, of which the service maps the registered parts (file.go), in windows that many regions
// share (window.go). Its pages are the program's: the service makes none (guard.go), removes none, and accesses none after
// the region has been deregistered. Memory that several processes share cannot move there: then the program passes the file itself
// (passed.go).
//
// # Holes
//
// A program can take pages out of its files while the card uses them. No seal forbids that and still lets the program map the
// file. An access to such a page waits, uninterruptibly, until all pages that are taken out at once are out: 0.35 to
// 0.43 s for a GiB on two cores, 1.5 s where other work had both, of which the card waited up to 0.5 s (BenchmarkHole of
// verbs/server). These limits bound the wait:
//
//   - The card's wait ends in a fault, which costs the program its session.
//   - Sessions end whose user's files have more than twice as many bytes as the user may register (filewatch.go).
//   - Then the user shares no memory for a minute. If it happens again meanwhile, all of its sessions end that share some.
//
// So, in a minute, a user can make the card wait about twice as long as the kernel takes to free twice limits.memory and
// the bytes that its programs can fill between two checks: about 1 s each for the default of 1 GiB, where no other work runs
// (calculated, not measured). Without a limit of memory only the machine's memory is a bound. Preventing the first wait
// would need pages that are pinned and mapped apart from the file, for which the kernel has only /dev/udmabuf, which services mostly
// may not open.
//
// # Charges
//
// The kernel charges a page to the process that touches it first: to the service's control group, not the client's.
// So an administrator limits users by Limits.Memory, and all of them together by Limits.All, which is checked before
// a page is touched; the unit's MemoryMax has to be above that. Page tables count too (pagetables.go). A client can punch
// holes into its own arena until its session ends: both sides read zeros there, and the next access makes a new page at the
// cost of the side that accesses. Only with vm.overcommit_memory=2 and no memory left does the card then get no page, which
// ends the session.
//
// # State and locks
//
//	arenaWatch   the sessions whose arenas are checked        arenaWatch.mu
//	Arena        free extents and allocated pieces            Arena.mu
//	files        all files, and which sessions use them       files.mu
//	file         the windows of a file, and their charges     file.mu, after files.mu
//	barred       users and until when                         barred.mu
//
// No lock is held while a session is ended, a file is closed, or pages are populated.
package memory
