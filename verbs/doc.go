// Package verbs is the API for programs: libibverbs' nouns with Go's habits.
//
//	card  hca.Open("eth0") or any other Provider
//	 └ Context            Open
//	    ├ PD              AllocPD            protection domain
//	    │  ├ MR           AllocMR, RegMR     memory that the card may use
//	    │  ├ AH           CreateAH           a destination, resolved
//	    │  └ QP           CreateQP           PostSend, PostRecv, AttachMcast
//	    ├ CQ              CreateCQ           Poll, Wait
//	    ├ Membership      JoinMulticast      of a group, until closed
//	    └ AsyncEvent      GetAsyncEvent      what happens besides
//
//	program ── PostSend ──► queue in memory ──► card ──► wire
//	program ◄── Poll ────── queue in memory ◄── card ◄── wire
//
// Commands (create, modify, query, destroy) go through a Provider; work
// requests and completions go through queues in memory (package ring) that the
// card reads and writes by itself. Posting and polling allocate nothing, and
// make no system call unless the card sleeps and must be woken.
//
// The state of every object is the card's. A Context keeps only what posting and
// polling need: which queue pair a completion belongs to, how many of its slots are
// free, and the memory that inline sends are copied from.
//
// Locks, in order: QP.modifyMu, elements.mu, QP.sendMu, QP.recvMu, CQ.mu, Context.mu.
// Under CQ.mu the card may be run, which takes none of these.
//
// Errors wrap a sentinel of this package, which unwraps to the errno that
// libibverbs gives: errors.Is(err, unix.EINVAL) holds. The names are those of the
// manual pages (ibv_post_send(3) is QP.PostSend) and of the kernel's ib_verbs.h.
//
// Package ud is the short way, for programs that only send and receive.
//
// Left out as yet: completion channels, shared receive queues, connection
// management; connected services.
package verbs
