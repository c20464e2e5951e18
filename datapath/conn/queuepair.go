// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// QueuePair is the interface of a requester and a responder to their queue pair. Its methods are called only within a
// call of theirs. CompleteSend and CompleteRecv may move the queue pair to ERR and call Enter, as they may overrun the
// CQ.
type QueuePair interface {
	// Memory returns the memory of an SGE of a request from an offset on, as far as it is contiguous: the piece, and
	// the number of the length bytes that it covers, at least one if length is not 0. ok is false if the access is not
	// permitted. For a null region the piece is shorter than n: the remaining bytes are read as zeros and not written.
	// For a region with signatures n is 0, and Move copies the bytes.
	Memory(sge ib.SGE, offset, length int, write bool) (piece []byte, n int, ok bool)
	// WriteRecv writes a payload to the memory of a receive request's list, from an offset on; false if the access is
	// not permitted.
	WriteRecv(list ring.SGList, offset int, payload []byte) bool
	// Remote returns the memory of an R_Key of the peer; ok is false if the access is not permitted. It may return only
	// the first contiguous piece; the caller requests the rest. An access of length 0 needs no valid key (IBA
	// 9.7.4.1.2).
	Remote(key ib.RKey, addr uint64, length uint32, access ib.AccessFlags) (memory []byte, ok bool)
	// Bind binds a memory window to a part of a region, under a new key (IBA 10.6.7).
	Bind(key ib.RKey, addr uint64, b ring.Bind) ib.WCStatus
	// Move copies bytes from an SGE or, with write, to it, where Memory returns no piece because the region has
	// signatures; false if the access is not permitted. MoveRemote is the same for Remote.
	Move(sge ib.SGE, offset int, bytes []byte, write bool) bool
	MoveRemote(key ib.RKey, addr uint64, bytes []byte, write bool) bool
	// Register makes a fast registration of the memory in the list, under a new key and at a base (IBA 10.6.5), with or
	// without signatures.
	Register(key ib.RKey, base uint64, r ring.Reg, signed bool) ib.WCStatus
	// Invalidate revokes the key of a window or a fast region, on behalf of the program or its peer; false if that is
	// not permitted.
	Invalidate(key ib.RKey, peer bool) bool
	// Target selects the SRQ of an XRC packet: later calls use its receive requests, memory and CQ. It returns false if
	// the queue pair must not use it. It is called first for each XRC packet.
	Target(number wire.SRQN) bool
	// TakeRecv consumes the next receive request; false if none is posted.
	TakeRecv(r *ring.Recv) bool
	// Credits returns the ACK syndrome with the number of posted receive requests.
	Credits() wire.Syndrome
	// CompleteSend and CompleteRecv write a completion. CompleteRecv returns false if its CQ was overrun.
	CompleteSend(c Completion)
	CompleteRecv(c Completion) bool
	// Fail moves the queue pair to ERR or SQE, by Enter, and notifies the program.
	Fail(state ib.QPState)
	// Note notifies the program of an event.
	Note(event ib.EventType)
}

// Completion holds the fields of a work completion that a requester or responder sets.
type Completion struct {
	ID        uint64
	Status    ib.WCStatus
	Opcode    ib.WCOpcode
	Flags     ib.WCFlags
	ByteLen   uint32
	Imm       uint32 // or the key that was invalidated
	Solicited bool
}

// Attr are the attributes of a connection (ibv_qp_attr). They change between two calls.
type Attr struct {
	Service wire.Service // ServiceRC, ServiceUC or ServiceXRC
	MTU     wire.MTU     // of the path

	Access          ib.AccessFlags // operations permitted to the peer: remote read, write, atomic
	MinRNRTimer     uint8          // 5-bit code of the wait that an RNR NAK requests
	MaxDestRDAtomic uint8          // maximum number of outstanding READs and atomics of the peer

	Timeout     uint8 // 4.096 µs × 2ⁿ; 0: no timeout
	RetryCnt    uint8 // 0 to 7
	RNRRetry    uint8 // 0 to 7; 7: no limit
	MaxRDAtomic uint8 // maximum number of own outstanding READs and atomics

	NotifyDrained bool // send EventSQDrained in SQD when the requests begun are finished
	Long          bool // long packets are possible: frames never leave memory (segment.go)
}

// Reliable reports whether packets are acknowledged.
func (a *Attr) Reliable() bool { return a.Service != wire.ServiceUC }

// mostReads returns the maximum number of outstanding READs and atomics.
func (a *Attr) mostReads() int { return max(1, int(a.MaxRDAtomic)) }

// xrc reports whether requests contain the number of a shared receive queue.
func (a *Attr) xrc() bool { return a.Service == wire.ServiceXRC }

// Counters counts the network errors that requesters detect.
type Counters struct {
	Retransmits           uint64 // retransmitted packets
	Timeouts              uint64 // expired local ACK timeouts
	Probes                uint64 // packets retransmitted before the timeout, to make the peer report its expected PSN
	SequenceNAKs, RNRNAKs uint64 // NAKs of peers: packets are missing; no receive request is posted
}

// Reason is the reason why a packet was not accepted. The zero Reason means that it was.
type Reason uint8

// The reasons.
const (
	Taken          Reason = iota // also for a packet that is kept until the missing ones arrive
	QPState                      // the queue pair's state does not allow it
	Duplicate                    // acknowledged again, not executed again
	OutOfSequence                // earlier packets are missing, and it was not kept
	StrayAnswer                  // an unexpected response
	InvalidRequest               // a request that the peer is not permitted to make, or that is out of order; or a malformed response
	RemoteAccess                 // an access to memory that the peer is not permitted
	NoReceive                    // no receive request is posted
	NoRoom                       // the receive request is too short
	Protection                   // the program's own memory is not writable
	CQFull                       // the completion queue was overrun
	XRCDomain                    // its number is that of no SRQ in the XRC domain
	NotInvalidated               // a SEND has arrived whose key cannot be invalidated

	Reasons int = iota // number of reasons
)

// Turn is the time at which a requester or responder has packets to send.
type Turn uint8

// The turns. TurnLater is in the next round: until then a program can post its response, which then leaves together
// with the acknowledgement.
const (
	NoTurn Turn = iota
	TurnLater
	TurnNow
)

// Step is the result of Next.
type Step uint8

// The steps.
const (
	Idle    Step = iota // there is no packet to send now
	Worked              // work was done without a packet; there may be more
	Ready               // a packet is described and must be filled
	Limited             // a packet is described that is more than the limits allow
)

// Packet is a packet to send: Next describes it, and Fill writes its payload. A packet that is not filled has changed
// nothing.
type Packet struct {
	wire.Transport     // except the fields of the path and the card
	Length         int // of the payload, in bytes

	work     *work // of a requester, like the next three
	place    uint32
	psns     uint32 // number of PSNs that it uses: for a READ those of the response
	asks     bool   // it requests a response
	response *response
}
