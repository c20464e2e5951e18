// Package verbs is the RDMA verbs for Go programs: the calls of libibverbs, by its names in Go's spelling.
// ibv_post_send(3) is QP.PostSend, and IBV_WC_SUCCESS is WCSuccess. docs/VERBS.md lists every name.
//
//	card                              hca.Open("eth0"), client.Dial of the service, or another Provider
//	 └ Context                        Open
//	    ├ PD                          AllocPD: a protection domain
//	    │  ├ MR                       AllocMR, RegMR: memory that the card may use
//	    │  ├ MW                       AllocMW: a key to a part of a region
//	    │  ├ AH                       CreateAH: a destination of datagrams
//	    │  ├ SRQ                      CreateSRQ: receives for many queue pairs
//	    │  └ QP                       CreateQP: PostSend, PostRecv
//	    ├ CQ                          CreateCQ: Poll, Wait, ReqNotify
//	    ├ CompChannel                 CreateCompChannel: Get returns notifications of CQs
//	    ├ XRCD                        OpenXRCD: a domain of XRC targets and their SRQs
//	    ├ Membership                  JoinMulticast: membership of a group, until Close
//	    ├ Counters, DM, TD            CreateCounters, AllocDM, AllocTD
//	    └ AsyncEvent                  GetAsyncEvent, or the handlers of objects
//
//	program ── PostSend ──► queue in memory ──► card ──► network
//	program ◄── Poll ────── queue in memory ◄── card ◄── network
//
// Posting and polling read and write memory shared with the card: they allocate nothing, and make a system call only
// to wake a sleeping card. All other calls are commands to the card, which owns the state of every object. All methods
// are safe for concurrent use. After a command that changes or closes an object, each request sees the object
// entirely as before or entirely as after.
//
// # Completions
//
// Poll returns completions at once. Wait sleeps until there are some. ReqNotify requests one notification, through a
// completion channel or a handler, for programs that wait for several sources. CQ.Modify makes notifications rarer.
//
// # Errors
//
// An error wraps an Err value of this package, which unwraps to the errno of libibverbs: errors.Is(err, unix.EINVAL).
// Unsupported values are ErrUnsupported.
//
// # Other packages
//
// ud and rc are shorter ways to datagrams and connections, cm is librdmacm. Package ib defines the values and attributes,
// of which this package repeats the everyday ones. Package kernel has the calls of the kernel's ib_verbs.h that
// libibverbs lacks; compat has libibverbs' conversions and calls without effect.
//
// # Locks
//
// QP.modifyMu, QP.sendMu, QP.recvMu, CQ.mu, Context.mu, in this order. Apart: SRQ.modifyMu, SRQ.mu; CQ.resizing, CQ.mu;
// MR.reregMu; CQ.acks.mu while a CQ is destroyed; DM.mu; domainUsers.mu; eventReader.asking, eventReader.mu. No lock is
// taken under eventSources.mu. A poll may run the card under CQ.mu; the card takes none of these locks.
package verbs
