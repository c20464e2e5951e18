// SPDX-License-Identifier: Apache-2.0

// Package verbs implements the RDMA verbs for Go programs. Its names are those of libibverbs in Go's spelling:
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
// Poll returns the completions in the queue without waiting. Wait sleeps until there are completions. ReqNotify
// requests one notification, through a completion channel or a handler, for programs that wait for several sources.
// CQ.Modify reduces the number of notifications.
//
// # Errors
//
// Errors wrap an Err value of this package, which unwraps to the errno of libibverbs: errors.Is(err, unix.EINVAL).
// Unsupported values return ErrUnsupported.
//
// # Other packages
//
// Packages ud and rc are simpler interfaces to datagrams and connections; cm is librdmacm. Package ib defines the
// values and attributes; this package has aliases of the common ones. Package kernel has the calls of the kernel's
// ib_verbs.h that libibverbs lacks; compat has libibverbs' conversions and the calls that have no effect.
//
// # Locks
//
// The order is QP.modifyMu, QP.sendMu, QP.recvMu, CQ.mu, Context.mu. Separate orders: SRQ.modifyMu, SRQ.mu;
// CQ.resizing, CQ.mu; MR.reregMu; CQ.acks.mu while a CQ is destroyed; DM.mu; domainUsers.mu; eventReader.asking,
// eventReader.mu. No lock is acquired under eventSources.mu. A poll may run the card under CQ.mu; the card acquires
// none of these locks.
package verbs
