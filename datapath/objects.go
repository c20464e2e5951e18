package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// PD is the number of a protection domain: what belongs together has the same.
type PD uint32

// MR is a memory region as the engine sees it. Offsets in SGEs count from the
// start of Memory; addresses that a program gives are never used.
type MR struct {
	LKey   ring.LKey
	PD     PD
	Memory []byte
	Write  bool // local write: receives may go here
}

// A handle is a place in a table and the generation of its use: what queues carry, an
// address handle or an lkey, never means the next object at the place.
//
//	handle  generation 15 | place 17
//	lkey    generation, high 7 | place 17 | generation, low 8 (ib_inc_rkey changes those only)
const (
	placeBits         = 17
	lkeyBits          = 8
	HandlePlaces      = 1 << placeBits        // the most objects that a table has
	HandleGenerations = 1 << (32 - placeBits) // the generations of a place, from 0 on
)

// HandleFor makes the handle of a place in its generation.
func HandleFor(place, generation uint32) uint32 { return generation<<placeBits | place }

// SplitHandle undoes HandleFor.
func SplitHandle(handle uint32) (place, generation uint32) {
	return handle % HandlePlaces, handle >> placeBits
}

// LKeyFor makes the key of a memory region's handle.
func LKeyFor(handle uint32) ring.LKey {
	place, generation := SplitHandle(handle)
	high := generation >> lkeyBits
	return ring.LKey((high<<placeBits|place)<<lkeyBits | generation&(1<<lkeyBits-1))
}

// lkeyPlace is the key's place in the table.
func lkeyPlace(k ring.LKey) int { return int(k >> lkeyBits % HandlePlaces) }

// AH is an address handle as the engine sees it: a path, and what its packets say in their
// headers.
type AH struct {
	handle uint32 // what requests name it by; see SetAH

	PD       PD
	Path     *Path
	Template wire.Template // without Ethernet addresses, which are the path's
	Group    bool          // the destination is a group: Dest
	Dest     wire.GID
}

// CQ is the card's end of a completion queue.
type CQ struct {
	Queue *ring.CompletionProducer
	QPs   map[*QP]struct{}
	// Wake tells the program that an armed queue has its event. It runs under the lease, and
	// never waits.
	Wake func()
	// NoteOverrun is told of an overrun, once, under the lease.
	NoteOverrun func()

	dirty     bool // has entries to publish
	solicited bool // a solicited or failed one is among them
	overrun   bool
}

// QP is a UD queue pair as the engine sees it.
type QP struct {
	Session         *Session
	Number          wire.QPN
	PD              PD
	DoorbellIndex   uint32 // its bit in the session's doorbell
	CompletionToken uint32 // in each of its completions: CQE.Token
	State           ring.QPState
	QKey            wire.QKey
	PKey            wire.PKey
	PSN             wire.PSN
	SigAll          bool
	// NoSelfLoopback keeps the queue pair's own messages to groups from coming back to it.
	NoSelfLoopback bool

	Send           *ring.SendConsumer
	Recv           *ring.RecvConsumer
	SendCQ, RecvCQ *CQ
	MaxInline      uint32
	MaxSendSGE     uint32
	// NoteState is told of a state that the engine chose itself (SQE, ERR), and
	// whether no completion tells of it: its CQ was overrun. It runs under the lease.
	NoteState func(s ring.QPState, fatal bool)

	waiting        bool // in the engine's turns, between these two
	before, behind *QP
}
