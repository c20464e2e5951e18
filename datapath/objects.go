package datapath

import (
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ring"
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

// LKeys are made of an index and a byte that changes with each life of the
// index (ib_inc_rkey changes those 8 bits only).
const lkeyShift = 8

// LKeyFor makes the key of a table index in its generation.
func LKeyFor(index uint32, generation uint8) ring.LKey {
	return ring.LKey(index<<lkeyShift | uint32(generation))
}

// Index is the key's place in the table.
func lkeyIndex(k ring.LKey) int { return int(k >> lkeyShift) }

// AH is an address handle as the engine sees it. The control plane replaces
// Template and flags between bursts as neighbours and addresses change.
type AH struct {
	PD          PD
	Template    wire.Template
	Local       bool // the destination is this device
	Unreachable bool // the neighbour failed after the handle was made
	Group       bool // the destination is a group: Dest
	Dest        wire.GID
}

// CQ is the card's end of a completion queue.
type CQ struct {
	Queue *ring.CompletionProducer
	Wake  chan<- struct{} // of capacity 1: sent to when an armed queue gets its event
	QPs   map[*QP]struct{}
	// NoteOverrun is told of an overrun, once, under the lease.
	NoteOverrun func()

	dirty     bool // has entries to publish
	solicited bool // a solicited or failed one is among them
	overrun   bool
}

// State is a queue pair's state as far as the datapath cares.
type State uint8

// The states of IBA 10.3.1, with libibverbs' numbers.
const (
	StateReset State = iota
	StateInit
	StateRTR
	StateRTS
	StateSQD
	StateSQE
	StateError
)

func (s State) receives() bool { return s >= StateRTR && s <= StateSQE }

// QP is a UD queue pair as the engine sees it.
type QP struct {
	Number wire.QPN
	PD     PD
	Index  uint32 // its bit in the doorbell
	Token  uint32 // echoed in completions
	State  State
	QKey   wire.QKey
	PKey   wire.PKey
	PSN    wire.PSN
	SigAll bool
	// NoSelfLoopback keeps the queue pair's own messages to groups from coming back to it.
	NoSelfLoopback bool

	Send           *ring.SendConsumer
	Recv           *ring.RecvConsumer
	SendCQ, RecvCQ *CQ
	MaxInline      uint32
	MaxSendSGE     uint32
	// NoteState is told of a state that the engine chose itself (SQE, ERR), and
	// whether no completion tells of it: its CQ was overrun. It runs under the lease.
	NoteState func(s State, fatal bool)

	waiting bool // in the engine's list of queue pairs with work left
}
