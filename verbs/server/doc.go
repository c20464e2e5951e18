// Package server is the service's side of clients: it gives programs sessions on the service's devices,
// over a unix socket.
//
//	client ── socket ──► connection ── commands ──► hca.Session ── on a Source (a card)
//	   │                     │                          │
//	   ├─── memfd ──────── arena: queues and regions ───┤
//	   └─── eventfd, socket pair ── signals: wake-ups ──┘
//
// A connection is a session. Its goroutines: one reads the socket and carries out commands; each command that may
// wait has its own, at most maxWaiting; one tells the client when its session ends. The card itself hears the
// client's calls (hca.SessionConfig.Calls). When the socket ends, however it ends, also in the middle of a command,
// connection.end frees everything, and nothing else does.
//
// Memory (arena.go). A session has one memfd, sealed against shrinking and growing; most of it is never
// touched and takes no memory. Pages are made when a piece is allocated (MADV_POPULATE_WRITE), so that the
// card never meets one that cannot be had, and zeroed when they are used again. No two sessions share a
// memfd, so no session sees the memory of another, live or stale. A session whose program removes pages from it ends
// (arenawatch.go). The pages of a session that has ended return to the kernel (MADV_REMOVE), also if the client keeps
// them mapped.
//
// Memory of the program's own (processfile.go). A process has one sparse memfd, of which the service maps what is
// registered, in windows that many regions share (window.go). Its pages are the program's: the service makes none
// (holes.go), takes none away, and touches none after the region has gone.
//
// A program can take pages out of its file while the card uses them, and nothing can seal that off: what forbids it
// forbids to map the file too. Who touches such a page waits, uninterruptibly, until all that is taken out at once is
// out: 0.35 to 0.43 s for a GiB on two cores, 1.5 s where other work had both, of which the card waited up to 0.5 s
// (BenchmarkHole). What bounds that: the card's wait ends in a fault, which costs the program its session; sessions end
// whose user's files have more than twice as many bytes as the user may register (filewatch.go, ten times a second);
// and then the user shares no memory for a minute, and if it happens again meanwhile, all of its sessions end that share
// some. So a user can have the card wait, in a minute, twice about as long as the kernel takes to free twice
// limits.memory, and what its programs can fill in the tenth of a second in between: some 1 s each for the 1 GiB that
// is the default, where nothing else runs (reckoned, not measured). Without a limit of memory only the machine's memory is a bound. That one
// wait itself is not prevented: the page would have to be pinned and mapped apart from the file, for which the kernel
// has only /dev/udmabuf, which services mostly may not open.
//
// The kernel charges a page to the process that touches it first: to the service's control group, not the client's.
// So an administrator limits users by Limits.Memory, and all of them together by Limits.All, which is asked before
// a page is touched; the unit's MemoryMax has to be above that. Page tables count too (tables.go). A client can punch holes
// into its own memfd until its session ends: both sides read zeros there, and whoever touches a hole next gets a new page, and
// is charged for it; the card waits as long as the kernel takes to make the hole. Only with vm.overcommit_memory=2, and no memory
// left, does the card then not get a page, which ends the session.
//
// System calls that a client can make block, such as the last close of a file that it has passed, have threads of their own, a
// few for each user (blocking.go).
//
// A client that misbehaves harms only itself. If it sends what is no message, its connection ends. If it does not
// read its replies, the service stops reading from it, and after writeTimeout its connection ends. If it sends
// descriptors that nobody has asked for, so does it; from Linux 6.16 on it cannot (rights.go). When the socket of events is full, an event is kept, one for each CQ, and
// delivered when there is room: the card never waits. Each side has its own end of that socket, so no flag that one
// sets affects the other. A client that is stopped is like one that is idle.
//
// A program that only looks at the service (look.go) has a connection without a session: lists of clients and of
// objects, page by page, and counters. Root and the service's own user see everything, others what is theirs. A
// page holds a card for as long as it takes to copy it.
//
// A Source may have a card for each network namespace (caller.go). Then a program sees only devices of its own, and one
// that is elsewhere than the service sees nothing of others, whatever its uid. The same holds for who comes by the
// socket of a container (doors.go), which counts as one user.
//
// Users are told apart by the socket's peer credentials (SO_PEERCRED). An ordinary user has 65,536 further uids
// (subuid.go), which count as the user's. All connections of a user share a quota (quota.Quota). Who may connect at
// all is decided by the socket's mode and owner. A user that connects more often than is served (pace.go) has its
// connections closed unread, so that others get their turn.
package server
