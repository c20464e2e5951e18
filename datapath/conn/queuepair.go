// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// QueuePair is the interface of a requester and a responder to their queue pair. They call its methods only during
// calls of their own methods. CompleteSend and CompleteRecv may overrun the CQ; they then move the queue pair to ERR
// and call Enter.
type QueuePair interface {
	// Memory returns the first contiguous piece of the memory of an SGE from offset on. n is the number of bytes that
	// it covers, from 1 to length (0 if length is 0). ok is false if the access is not permitted. For a null region the
	// piece is shorter than n: the remaining bytes are read as zeros and are not written. For a region with signatures
	// n is 0, and the caller must use Move to copy the bytes.
	Memory(sge ib.SGE, offset, length int, write bool) (piece []byte, n int, ok bool)
	// WriteRecv writes a payload to the memory of a receive request's list, from an offset on; false if the access is
	// not permitted.
	WriteRecv(list ring.SGList, offset int, payload []byte) bool
	// Remote returns the memory that the peer addresses by an R_Key; ok is false if the access is not permitted. If the
	// memory is not contiguous, Remote returns the first piece, and the caller calls it again for the rest. An access
	// of length 0 needs no valid key (IBA 9.7.4.1.2).
	Remote(key ib.RKey, addr uint64, length uint32, access ib.AccessFlags) (memory []byte, ok bool)
	// Bind binds a memory window to a part of a region, under a new key (IBA 10.6.7).
	Bind(key ib.RKey, addr uint64, b ring.Bind) ib.WCStatus
	// Move copies bytes from an SGE or, with write, to it, if its region has signatures, so that Memory returns no
	// piece. It returns false if the access is not permitted. MoveRemote is the same for Remote.
	Move(sge ib.SGE, offset int, bytes []byte, write bool) bool
	MoveRemote(key ib.RKey, addr uint64, bytes []byte, write bool) bool
	// Register executes a fast registration (IBA 10.6.5) of the memory in the list of r, with a new key and base
	// address, with or without signatures.
	Register(key ib.RKey, base uint64, r ring.Reg, signed bool) ib.WCStatus
	// Invalidate revokes the key of a window or a fast region, on behalf of the program or its peer; false if that is
	// not permitted.
	Invalidate(key ib.RKey, peer bool) bool
	// Target selects the SRQ of an XRC packet: later calls use its receive requests, memory and CQ. It returns false if
	// the queue pair must not use this SRQ. It is called for each XRC packet, before other methods.
	Target(number wire.SRQN) bool
	// TakeRecv consumes the next receive request; false if none is posted.
	TakeRecv(r *ring.Recv) bool
	// Credits returns the ACK syndrome that encodes the number of posted receive requests.
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

// Attr holds the attributes of a connection (ibv_qp_attr). They may change between calls of Requester and Responder.
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

	NotifyDrained bool // in SQD, send EventSQDrained when all begun requests are finished
	Long          bool // the network is in memory, so long packets are possible (segment.go)
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
	SequenceNAKs, RNRNAKs uint64 // NAKs received from peers: for missing packets; for missing receive requests
}

// Reason is the reason why a packet was not accepted. The zero Reason, Taken, means that it was accepted.
type Reason uint8

// The reasons.
const (
	Taken          Reason = iota // accepted, or kept until the missing packets arrive
	QPState                      // the queue pair does not accept it in its current state
	Duplicate                    // acknowledged again, not executed again
	OutOfSequence                // earlier packets are missing, and it was not kept
	StrayAnswer                  // an unexpected response
	InvalidRequest               // a request that the peer is not permitted to make; an invalid request or response
	RemoteAccess                 // the peer is not permitted to access the memory
	NoReceive                    // no receive request is posted
	NoRoom                       // the receive request is too short
	Protection                   // the program's own memory is not writable
	CQFull                       // the completion queue was overrun
	XRCDomain                    // the SRQ number is not in the XRC domain
	NotInvalidated               // a SEND was stored, but the key that it names cannot be invalidated

	Reasons int = iota // number of reasons
)

// Turn is the time at which a requester or responder needs to send packets.
type Turn uint8

// The turns. TurnLater means in the next round: until then the program can post its reply, which is then sent together
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
	Worked              // a request was executed or failed without a packet; the caller calls Next again
	Ready               // a packet is described and can be filled
	Limited             // a packet is described, but exceeds the limits
)

// Packet is a packet to send: Next describes it, and Fill writes its payload. State changes only in Fill: the caller
// may discard a described packet.
type Packet struct {
	wire.Transport     // except the fields of the path and the card
	Length         int // of the payload, in bytes

	work     *work     // request of a requester; the next three are of a requester too
	place    uint32    // index of the packet in its request
	psns     uint32    // number of PSNs that it uses: for a READ those of the response
	asks     bool      // it requests an acknowledgement
	response *response // response of a responder; nil: an ACK or NAK
}
