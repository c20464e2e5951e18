// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/netip"
	"os"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// The requests and grants, in the order of Provider's commands.
type (
	// QueryPortRequest requests the state of a port.
	QueryPortRequest struct{ Port uint8 }

	// QueryGIDTableRequest requests a port's GID table.
	QueryGIDTableRequest struct{ Port uint8 }
	// QueryGIDTableGrant is a GID table: the used entries, ordered by index, and the maximum number
	// (PortAttr.GIDTableLen).
	QueryGIDTableGrant struct {
		Entries []ib.GIDEntry
		Length  int
	}

	// QueryPKeyRequest requests a partition key of a port.
	QueryPKeyRequest struct {
		Port  uint8
		Index int
	}
	// QueryPKeyGrant is a partition key.
	QueryPKeyGrant struct{ PKey wire.PKey }

	// AllocPDGrant is a new protection domain.
	AllocPDGrant struct{ PD Handle }
	// DeallocPDRequest frees a protection domain.
	DeallocPDRequest struct{ PD Handle }

	// AllocMRRequest requests zeroed memory, registered.
	AllocMRRequest struct {
		PD     Handle
		Length int    // bytes
		IOVA   uint64 // the address that the region begins at
		Access ib.AccessFlags
	}
	// RegMRRequest requests the registration of the caller's memory.
	RegMRRequest struct {
		PD     Handle
		Memory []byte
		IOVA   uint64
		Access ib.AccessFlags
	}
	// MRGrant is a registered memory region.
	MRGrant struct {
		MR     Handle
		LKey   ib.LKey
		Memory []byte
	}
	// ReregMRRequest changes a memory region, whose keys stay the same. Only the fields selected by Flags are used; the
	// others are 0.
	ReregMRRequest struct {
		MR     Handle
		Flags  ib.ReregFlags
		PD     Handle
		Memory []byte
		IOVA   uint64
		Access ib.AccessFlags
	}
	// DeregMRRequest ends the registration of a memory region.
	DeregMRRequest struct{ MR Handle }

	// AllocNullMRRequest requests a region that reads as zeros and discards writes.
	AllocNullMRRequest struct{ PD Handle }

	// AllocFastMRRequest requests a region that requests register (WRRegMR). The grant's memory is its list
	// (ring.RegEntry), which the program writes. A region with signatures has two lists of that length, the second for
	// fields, followed by ib.SigAttrs.
	AllocFastMRRequest struct {
		PD      Handle
		Type    ib.MRType
		Entries int // of the list
	}
	// CheckMRStatusRequest queries and clears the failed check of a region with signatures.
	CheckMRStatusRequest struct{ MR Handle }
	// CheckMRStatusGrant is the first block that failed.
	CheckMRStatusGrant struct {
		Failed bool
		Err    ib.SigErr
	}
	// MapFMRRequest registers a fast region of the first entries of its list, by a command.
	MapFMRRequest struct {
		MR  Handle
		Key ib.RKey // the new one
		Reg ring.Reg
		// IOVA is the address that the region begins at.
		IOVA uint64
	}
	// UnmapFMRRequest ends that registration.
	UnmapFMRRequest struct{ MR Handle }

	// AllocCoherentRequest requests zeroed memory that only the local DMA key addresses. DeregMR frees it.
	AllocCoherentRequest struct{ Length int }

	// AllocDMRequest requests zeroed device memory.
	AllocDMRequest struct{ Length int }
	// AllocDMGrant is device memory.
	AllocDMGrant struct {
		DM     Handle
		Memory []byte
	}
	// RegDMMRRequest requests the registration of a part of device memory.
	RegDMMRRequest struct {
		PD, DM         Handle
		Offset, Length int
		Access         ib.AccessFlags
	}
	// FreeDMRequest frees device memory.
	FreeDMRequest struct{ DM Handle }

	// AllocMWRequest requests a memory window.
	AllocMWRequest struct {
		PD   Handle
		Type ib.MWType
	}
	// AllocMWGrant is a new, unbound memory window.
	AllocMWGrant struct {
		MW   Handle
		RKey ib.RKey // each bind may replace its low 8 bits
	}
	// DeallocMWRequest frees a memory window.
	DeallocMWRequest struct{ MW Handle }

	// CreateCompChannelGrant is a new completion channel.
	CreateCompChannelGrant struct {
		Channel Handle
		// Events is the program's end of a non-blocking pipe or socket. For each notification of a CQ the card writes
		// the CQ's EventID to it: 8 bytes, in the machine's byte order. End of file means that the card is closed or
		// has failed.
		Events *os.File
		// Ready receives a value after each write to Events, and after its end, for programs in the card's process; nil
		// for others.
		Ready <-chan struct{}
	}
	// DestroyCompChannelRequest frees a completion channel.
	DestroyCompChannelRequest struct{ Channel Handle }

	// CreateCQRequest requests a completion queue.
	CreateCQRequest struct {
		Entries    int
		EventID    uint64 // chosen by the program; identifies the CQ in its events
		Channel    Handle // receives its notifications; 0: none
		CompVector int
		WCFlags    ib.CQWCFlags
		Flags      ib.CQFlags
	}
	// CreateCQGrant is a new completion queue: at least as large as requested.
	CreateCQGrant struct {
		CQ       Handle
		Memory   []byte
		Geometry ring.Geometry
		// Events receives a value when waiting goroutines have to poll (ring.ArmedWait). Its capacity is 1, and both
		// the card and the program may send to it.
		Events chan struct{}
	}
	// ResizeCQRequest requests a queue for at least the given number of completions.
	ResizeCQRequest struct {
		CQ      Handle
		Entries int
	}
	// ResizeCQGrant is the new queue.
	ResizeCQGrant struct {
		Memory   []byte
		Geometry ring.Geometry
	}
	// ModifyCQRequest sets a CQ's moderation; see CQ.Modify.
	ModifyCQRequest struct {
		CQ            Handle
		Count, Period uint16
	}
	// CheckCQRequest requests the events that a CQ owes for these armings.
	CheckCQRequest struct {
		CQ      Handle
		Armings ring.Arming
	}
	// DestroyCQRequest frees a completion queue.
	DestroyCQRequest struct{ CQ Handle }

	// CreateSRQRequest requests a shared receive queue.
	CreateSRQRequest struct {
		PD      Handle
		Attr    SRQInitAttr
		EventID uint64 // chosen by the program; identifies the SRQ in its events
	}
	// CreateSRQGrant is a new shared receive queue: at least as large as requested.
	CreateSRQGrant struct {
		SRQ      Handle
		Attr     ib.SRQAttr
		Memory   []byte
		Geometry ring.Geometry
	}
	// ModifySRQRequest changes the attributes in the mask.
	ModifySRQRequest struct {
		SRQ  Handle
		Attr ib.SRQAttr
		Mask ib.SRQAttrMask
	}
	// ModifySRQGrant is the attributes after the change. After a resize the program posts to the new queue in Memory,
	// and never again to an older one; the card first dequeues the remaining receives of the older ones. A resize also
	// reports that the program no longer accesses queues that were empty at the resize before.
	ModifySRQGrant struct {
		Attr     ib.SRQAttr
		Memory   []byte // nil without a resize
		Geometry ring.Geometry
	}
	// QuerySRQRequest requests a shared receive queue's attributes.
	QuerySRQRequest struct{ SRQ Handle }
	// QuerySRQGrant is a shared receive queue's attributes.
	QuerySRQGrant struct{ Attr ib.SRQAttr }
	// DestroySRQRequest frees a shared receive queue.
	DestroySRQRequest struct{ SRQ Handle }

	// CreateQPRequest requests a queue pair, in RESET.
	CreateQPRequest struct {
		PD              Handle
		Type            ib.QPType
		Cap             ib.QPCap
		SigAll          bool
		BlockSelfMcast  bool
		Port            uint8 // of a GSI queue pair
		SendCQ, RecvCQ  Handle
		SRQ             Handle // 0: it has its own receive queue
		DoorbellIndex   uint32 // its bit in the doorbell, chosen by the program
		CompletionToken uint32 // chosen by the program; identifies it in completions
		EventID         uint64 // chosen by the program; identifies it in events
	}
	// CreateQPGrant is a new queue pair. With an SRQ it has no receive memory.
	CreateQPGrant struct {
		QP           Handle
		Number       wire.QPN
		Cap          ib.QPCap
		SendMemory   []byte
		SendGeometry ring.Geometry
		RecvMemory   []byte
		RecvGeometry ring.Geometry
	}
	// ModifyQPRequest changes the attributes in the mask.
	ModifyQPRequest struct {
		QP              Handle
		Attr            ib.QPAttr
		Mask            ib.QPAttrMask
		CompletionToken uint32 // the new token, if the mask contains the state and it is RESET
	}
	// ModifyQPGrant is a queue pair's attributes after the change, without its capabilities.
	ModifyQPGrant struct{ Attr ib.QPAttr }
	// QueryQPRequest requests a queue pair's attributes.
	QueryQPRequest struct{ QP Handle }
	// QueryQPGrant is a queue pair's attributes, without its capabilities.
	QueryQPGrant struct {
		Attr ib.QPAttr
		// Leaving: the card has not sent all requests once, and still can.
		Leaving bool
	}
	// DestroyQPRequest frees a queue pair.
	DestroyQPRequest struct{ QP Handle }

	// CreateAHRequest requests an address handle.
	CreateAHRequest struct {
		PD   Handle
		Attr ib.AHAttr
		// NoWait creates the handle immediately, even if the neighbour has not responded yet. Packets that are sent
		// meanwhile wait on the card.
		NoWait bool
	}
	// CreateAHGrant is a new address handle.
	CreateAHGrant struct{ AH Handle }
	// ModifyAHRequest changes an address handle to another address.
	ModifyAHRequest struct {
		AH   Handle
		Attr ib.AHAttr
	}
	// QueryAHRequest requests an address handle's attributes.
	QueryAHRequest struct{ AH Handle }
	// QueryAHGrant is the address handle's attributes in the card.
	QueryAHGrant struct{ Attr ib.AHAttr }
	// DestroyAHRequest frees an address handle.
	DestroyAHRequest struct{ AH Handle }

	// McastRequest attaches a queue pair to a group, or detaches it.
	McastRequest struct {
		QP   Handle
		MGID wire.GID
		MLID wire.MLID
	}

	// JoinMulticastRequest requests a membership.
	JoinMulticastRequest struct {
		Group netip.Addr
		State ib.JoinState
	}
	// JoinMulticastGrant is a membership, with the addresses computed by the join.
	JoinMulticastGrant struct {
		Membership Handle
		MGID       wire.GID
		SGID       wire.GID // source address; zero if the interface has no matching address
	}
	// LeaveMulticastRequest ends a membership.
	LeaveMulticastRequest struct{ Membership Handle }
)
