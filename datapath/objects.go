package datapath

import (
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// A handle is a place in a table and a generation, which counts the objects that the place has
// had. So the handle of a destroyed object in a queue never means the next object there.
//
//	generation 15 | place 17
const (
	placeBits         = 17
	HandlePlaces      = 1 << placeBits        // the most objects in a table
	HandleGenerations = 1 << (32 - placeBits) // the number of generations, which start at 0
)

// HandleFor makes the handle of a place and a generation.
func HandleFor(place, generation uint32) uint32 { return generation<<placeBits | place }

// SplitHandle is the inverse of HandleFor.
func SplitHandle(handle uint32) (place, generation uint32) {
	return handle % HandlePlaces, handle >> placeBits
}

// AH is the engine's entry of an address handle: a path and the headers of its packets.
type AH struct {
	handle uint32 // names it in requests; set by SetAH

	PD       region.PD
	Path     *Path
	Template wire.Template // without Ethernet addresses: those are in Path
	Group    bool          // Dest is a group
	Dest     wire.GID
}

// CQ is the card's end of a completion queue.
type CQ struct {
	Session *Session
	Queue   *ring.CompletionProducer
	QPs     map[*QP]struct{}
	// Wake wakes those who wait (ring.ArmedWait), and Notify sends the event of the other armings. Both
	// run under the lease and never block.
	Wake, Notify func()
	// NoteOverrun is called once, when the queue is overrun. It runs under the lease.
	NoteOverrun func()

	tally     *CQTally // nil if nobody counts
	dirty     bool     // it has entries to publish
	solicited bool     // a solicited or failed completion is among them
	overrun   bool
	moderated
}

// QP is the engine's entry of a queue pair. Recv is its own queue or its SRQ's, in which case SRQ
// is set; RecvPD is the PD of the memory that receives may write to: the SRQ's or its own.
type QP struct {
	// What a packet that arrives needs comes first: of ten thousand queue pairs hardly any is in the cache.
	Session *Session
	service Service
	Recv    *ring.RecvConsumer
	RecvCQ  *CQ    // nil of an XRC target, as SendCQ is
	tally   *Tally // nil if nobody counts
	Number  wire.QPN
	QKey    wire.QKey
	RecvPD  region.PD
	PKey    wire.PKey
	State   ring.QPState
	SigAll  bool
	SRQ     *SRQ // nil if it has a queue of its own

	Send            *ring.SendConsumer
	SendCQ          *CQ
	PD              region.PD
	DoorbellIndex   uint32 // its bit in the session's doorbell
	CompletionToken uint32 // in each of its completions: CQE.Token
	MaxInline       uint32
	MaxSendSGE      uint32
	// NoSelfLoopback: the queue pair does not receive its own messages to groups.
	NoSelfLoopback bool
	waiting        bool    // it is in the engine's turns
	before, behind *QP     // its neighbours there
	Domain         *Domain // of an XRC target, which has neither queues nor CQs of its own

	// NoteState is called when the engine itself changes the state (to SQE or ERR). fatal means
	// that no completion reports it, because the CQ was overrun. It runs under the lease.
	NoteState func(s ring.QPState, fatal bool)
	// NoteLastWQE is called when a queue pair with an SRQ has gone to ERR: it takes no more receives,
	// and the completions of those that it took are published. It runs under the lease.
	NoteLastWQE func()
	// NoteEvent is called for other events of a connected queue pair: EventCommEst, EventSQDrained,
	// EventQPReqErr, EventQPAccessErr, EventPathMigErr. It runs under the lease.
	NoteEvent func(ring.EventType)
}

// Service is what a queue pair does with packets and requests: Datagrams, or a Connection.
type Service interface {
	open(e *Engine, qp *QP)               // the queue pair is added
	close()                               // it is removed
	halt()                                // it stops, after a fault
	enter(state ring.QPState)             // its state changes
	receive(a *arrival) Drop              // a packet
	send(d *departure) (moved, done bool) // its turn; see sendSome
	flush()                               // it is in ERR: what is taken and not completed is flushed
	leaving() bool                        // see Engine.Leaving
	psn() *wire.PSN                       // of the next packet to send
	touch() uint32                        // reads what a packet needs first; see fetch
}

// Serve gives a queue pair its service, before it is added.
func (qp *QP) Serve(s Service) { qp.service = s }

// PSN is that of the next packet to send. It runs in Do.
func (qp *QP) PSN() wire.PSN { return *qp.service.psn() }

// SetPSN sets it, before RTS. It runs in Do.
func (qp *QP) SetPSN(psn wire.PSN) { *qp.service.psn() = psn }

// Tally counts the packets of a queue pair, and their bytes of payload, from when it is set: those that were delivered
// to it, and those that it sent, with what was sent again. It is read in Do.
type Tally struct{ Received, ReceivedBytes, Sent, SentBytes uint64 }

// SetTally has a queue pair counted; nil ends that. It runs in Do.
func (qp *QP) SetTally(t *Tally) { qp.tally = t }

// CQTally counts what a CQ is given, from when it is set: requests that were carried out, and others. It is read in Do.
type CQTally struct{ Completions, Errors uint64 }

// SetTally has a CQ counted; nil ends that. It runs in Do.
func (cq *CQ) SetTally(t *CQTally) { cq.tally = t }

func (t *CQTally) completed(status ring.WCStatus) {
	if status == ring.WCSuccess {
		t.Completions++
	} else {
		t.Errors++
	}
}

func (t *Tally) received(packets uint64, bytes int) {
	t.Received += packets
	t.ReceivedBytes += uint64(bytes)
}

func (t *Tally) sent(packets uint64, bytes int) {
	t.Sent += packets
	t.SentBytes += uint64(bytes)
}
