// Package verbs is the API for programs: libibverbs' names in Go's spelling.
//
//	card  hca.Open("eth0"), client.Dial of the service, or any other Provider
//	 └ Context            Open
//	    ├ PD              AllocPD            protection domain
//	    │  ├ MR           AllocMR, RegMR     memory that the card may use; Rereg
//	    │  ├ AH           CreateAH           a destination, resolved; Modify, Query
//	    │  ├ SRQ          CreateSRQ          PostRecv, for many queue pairs
//	    │  └ QP           CreateQP           PostSend, PostRecv, AttachMcast
//	    ├ XRCD            AllocXRCD, OpenXRCD  an XRC domain: its targets; its SRQs are of PDs
//	    ├ DM, TD          AllocDM, AllocTD   device memory and thread domains, for those who expect them
//	    ├ CompChannel     CreateCompChannel  Get: notifications of its CQs
//	    ├ CQ              CreateCQ, …Ex      Poll, Wait, ReqNotify, Resize
//	    ├ Membership      JoinMulticast      of a group, until closed
//	    ├ Counters        CreateCounters     of chosen queue pairs and CQs
//	    ├ HWStats         AllocHWStats       chosen counters of the card
//	    └ AsyncEvent      GetAsyncEvent      asynchronous events of the card and its objects; or by handlers, and a
//	                                         descriptor to poll(2) (SyscallConn)
//
//	program ── PostSend ──► queue in memory ──► card ──► wire
//	program ◄── Poll ────── queue in memory ◄── card ◄── wire
//
// Commands (create, modify, query, destroy) go through a Provider (package provider). Work requests and completions go
// through queues in memory (package ring), which the card reads and writes directly. Posting and
// polling allocate nothing. They make a system call only to wake a card that sleeps.
//
// The card owns the state of every object. A Context keeps only what posting and polling need: which queue pair a
// completion belongs to, how many slots of its queues are free, and the memory from which inline sends are copied.
//
// A queue pair has five identities. The session names it by its Handle, peers by its Number (QPN). The program
// chooses the other three: DoorbellIndex is its bit in the doorbell; CompletionToken is in each completion, and a
// reset changes it; EventID is in each event.
//
// A program learns of completions in one of three ways. Poll looks. Wait sleeps until there are some. A
// notification (CQ.ReqNotify) comes through a completion channel, for programs that sleep on several CQs, or on
// other descriptors too, or calls a handler (CQInitAttr.CompHandler). CQ.Modify makes wake-ups and notifications
// rarer.
//
// A memory region's addresses begin at 0, or where its owner chooses (RegMRIOVA). SGEs carry such addresses. The
// card checks them and subtracts the base, and never uses them as they are. A change of a region or an address
// handle (MR.Rereg, AH.Modify), and its end (Close), fall between two requests: each request sees the object
// entirely as it was, or entirely as it is then.
//
// Locks, in order: QP.modifyMu, QP.sendMu, QP.recvMu, CQ.mu, Context.mu. Apart from these: SRQ.modifyMu, SRQ.mu;
// CQ.resizing, CQ.mu; and MR.reregMu. eventSources.mu is taken last, and no other lock is taken under it.
// eventReader.asking comes before eventReader.mu and is held while a caller asks the card for an event.
// domainUsers.mu is held while a PD is deallocated, DM.mu while device memory is copied, registered or freed.
// CQ.acks.mu is held while the CQ is destroyed, and by nothing that posts or polls. A poll may run the card under
// CQ.mu; the card takes none of these locks.
//
// Errors wrap one of this package's Err values, which unwraps to the errno that libibverbs gives:
// errors.Is(err, unix.EINVAL) holds. The names are those of the manual pages (ibv_post_send(3) is
// QP.PostSend) and of the kernel's ib_verbs.h.
//
// Package ud is the short way for programs that only send and receive datagrams, and package rc is the short way to
// connections. Package cm has connection ids (rdma_cm), by which programs find each other.
//
// A connected queue pair (RC, UC) has one peer, whose address is one of its attributes (QPAttr, QP.Connect).
// Its requests may name the peer's memory, by an address in a region and the region's RKey.
//
// Protocols written as the kernel's are register memory by requests (PD.AllocFastMR, MR.MapSG, WRRegMR), and name what
// they map (Context.DMAMapSingle) by PD.LocalDMALKey.
//
// XRC has two types of them: an initiator (PD.CreateQP), which only sends, and a target (XRCD.CreateQP), which takes the
// receives of whichever SRQ of its domain a request names (SendWR.RemoteSRQN).
//
// Left out: flush and huge pages, whose access flags are ErrUnsupported.
package verbs
