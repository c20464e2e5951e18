package conn

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// QueuePair is what a requester and a responder need of the queue pair that they are halves of. All of it runs
// within a call of theirs. CompleteSend and CompleteRecv may bring the queue pair to ERR, and call Enter: their
// CQ may be overrun.
type QueuePair interface {
	// Memory is what an SGE of a request names, to be written or only read, as far as it lies in one piece from an
	// offset on: a piece, and how many of length bytes that is for, at least one if length is not 0. ok is false if the
	// SGE may not be accessed. The piece is shorter for a null region: the rest is read as zeros, and not written.
	// Of a region with signatures there is none: n is 0, and Move has the bytes.
	Memory(sge ib.SGE, offset, length int, write bool) (piece []byte, n int, ok bool)
	// WriteRecv writes a payload to the memory that the list of a receive names, from an offset on; false if some of
	// that may not be accessed.
	WriteRecv(list ring.SGList, offset int, payload []byte) bool
	// Remote is the memory that the peer names by an R_Key; ok is false if it may not be accessed in this way. It may
	// be only the first piece of that: who needs more asks for the rest. No bytes need no key (IBA 9.7.4.1.2).
	Remote(key ib.RKey, addr uint64, length uint32, access ib.AccessFlags) (memory []byte, ok bool)
	// Bind makes a window one to a part of a region, under a new key (IBA 10.6.7).
	Bind(key ib.RKey, addr uint64, b ring.Bind) ib.WCStatus
	// Move moves bytes of which Memory has found no piece, since they are of a region with signatures: from the SGE
	// or, to be written, to it; false if that cannot be. MoveRemote is the same for Remote.
	Move(sge ib.SGE, offset int, bytes []byte, write bool) bool
	MoveRemote(key ib.RKey, addr uint64, bytes []byte, write bool) bool
	// Register makes a fast region one of the memory in its list, under a new key and at a base (IBA 10.6.5), with
	// signatures or without.
	Register(key ib.RKey, base uint64, r ring.Reg, signed bool) ib.WCStatus
	// Invalidate revokes the key of a window or a fast region, as the program or its peer asks; false if the queue
	// pair may not.
	Invalidate(key ib.RKey, peer bool) bool
	// Target has the calls about receives and the peer's keys be for a shared receive queue that the peer has named:
	// its receives, its memory, its CQ. false if the queue pair may not use it. Only of XRC; a packet's comes first.
	Target(number wire.SRQN) bool
	// TakeRecv takes the next receive; false if there is none.
	TakeRecv(r *ring.Recv) bool
	// Credits is the ACK that says how many receives are posted.
	Credits() wire.Syndrome
	// CompleteSend and CompleteRecv write a completion. The second returns false if its CQ was overrun.
	CompleteSend(c Completion)
	CompleteRecv(c Completion) bool
	// Fail moves the queue pair to ERR or SQE, by Enter, and tells the program.
	Fail(state ib.QPState)
	// Note tells the program of an event.
	Note(event ib.EventType)
}

// Completion is what a half says in a work completion.
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

	Access          ib.AccessFlags // what the peer may do: remote read, write, atomic
	MinRNRTimer     uint8          // code of 5 bits that a peer is told when no receive is posted
	MaxDestRDAtomic uint8          // reads and atomics of the peer's that may be outstanding here

	Timeout     uint8 // 4.096 µs × 2ⁿ; 0 is for ever
	RetryCnt    uint8 // 0 to 7
	RNRRetry    uint8 // 0 to 7; 7 is for ever
	MaxRDAtomic uint8 // own reads and atomics that may be outstanding

	NotifyDrained bool // send EventSQDrained in SQD when what was begun is finished
	Long          bool // long packets may come: frames never leave memory (segment.go)
}

// Reliable says that packets are acknowledged.
func (a *Attr) Reliable() bool { return a.Service != wire.ServiceUC }

// mostReads is how many READs and atomics may be outstanding.
func (a *Attr) mostReads() int { return max(1, int(a.MaxRDAtomic)) }

// xrc says that requests name the shared receive queue that they are for.
func (a *Attr) xrc() bool { return a.Service == wire.ServiceXRC }

// Counters count what requesters see of a bad network.
type Counters struct {
	Retransmits           uint64 // packets that were sent again
	Timeouts              uint64 // times that the peer did not answer in time
	Probes                uint64 // packets sent again before that, to have the peer say what it has
	SequenceNAKs, RNRNAKs uint64 // answers of peers: packets are missing; no receive is posted
}

// Reason says why a packet was not taken. The zero Reason means that it was.
type Reason uint8

// The reasons.
const (
	Taken          Reason = iota // also of a packet that is kept until those before it come
	QPState                      // the queue pair's state does not allow it
	Duplicate                    // it came again: answered again, not carried out again
	OutOfSequence                // packets before it are missing, and it was not kept
	StrayAnswer                  // an answer that the requester does not wait for
	InvalidRequest               // what a peer may not ask for, or in this order; or a response that is none
	RemoteAccess                 // memory that a peer may not access in this way
	NoReceive                    // no receive is posted
	NoRoom                       // the receive is too short
	Protection                   // the program's own memory may not be written
	CQFull                       // the completion queue was overrun
	XRCDomain                    // it names no shared receive queue of the XRC domain
	NotInvalidated               // a SEND has arrived whose key cannot be invalidated

	Reasons int = iota // how many there are
)

// Turn says when a half has packets to send.
type Turn uint8

// The turns. A later one is in the next round: a program that answers a message at once has its answer and the
// acknowledgement leave together.
const (
	NoTurn Turn = iota
	TurnLater
	TurnNow
)

// Step is what Next found.
type Step uint8

// The steps.
const (
	Idle    Step = iota // there is nothing to send now
	Worked              // something was done without a packet; there may be more
	Ready               // a packet is described, to be filled
	Limited             // a packet is described that is more than the limits allow
)

// Packet is one to be sent: Next describes it, and Fill writes its payload. A packet that is not filled has
// changed nothing.
type Packet struct {
	wire.Transport     // but what is the path's and the card's
	Length         int // of the payload, in bytes

	work     *work // of a requester's, like the next three
	place    uint32
	psns     uint32 // that it takes: of a READ those of the response
	asks     bool   // for an answer
	response *response
}
