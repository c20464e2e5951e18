package datapath

import (
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
)

const (
	maxQPs = 1 << 16

	// What a round does at most, so that nobody who runs one, or waits for its end, is kept long.
	receiveBudget = 256  // frames, and further copies of them to groups
	sendBudget    = 128  // requests, copies to groups of this device, flushed requests
	changeBudget  = 1024 // flushed requests of a change between two rounds
	sendTurn      = 32   // requests of one queue pair before the next one has its turn
)

// Engine runs one device's queue pairs over one link. See the package comment
// for who may call what.
type Engine struct {
	lease  sync.Mutex
	wanted atomic.Int32 // control plane's calls that wait for the lease
	called atomic.Bool  // a session has called: see Session
	worker worker       // and what others tell it
	link   link.Link
	closed bool // the link is closed, nothing runs any more

	tables
	backlog
	rx       arrival   // of a packet from the link
	tx       departure // of a request
	counters Counters
	// noteRefused: see Config.
	noteRefused func()
}

// tables are what the control plane has the engine know. They change in Do only.
type tables struct {
	mtu        int // bytes of payload
	vlan       uint16
	down       bool // the link is down: what would be sent is dropped
	own        map[wire.GID]struct{}
	broadcasts map[wire.GID]struct{}
	macs       []wire.MAC         // the interface's; none: any
	passed     passedPair         // the addresses that were looked up last
	groups     map[wire.GID][]*QP // that have queue pairs attached
	qps        *[maxQPs]*QP       // by the low bits of the number
	sessions   []*Session         // whose doorbells are looked at
	dozing     []*Session         // the others
}

// backlog is what a round leaves for the next one.
type backlog struct {
	budget    int    // what is left of the round's
	turns     turns  // queue pairs with requests left
	arriving  fanout // of a received packet
	looping   fanout // of a packet of this device
	dirty     []*CQ  // to publish at the end of the round
	blocked   bool   // the link could not take all: try again without being told
	held      int    // packets that wait for neighbours; see Path
	resting   bool   // programs are told to call
	firstBell int    // the session whose doorbell is looked at first
	id        uint16 // next IPv4 identification

	burst       [link.MaxBurst][]byte
	taken, next int // of the burst: frames in it, and the one to look at next
}

// Config is what an engine is made with.
type Config struct {
	Link   link.Link
	MTU    wire.MTU
	VLAN   uint16 // 0: untagged
	Worker WorkerConfig
	// NoteRefused is told that the interface dropped what was to be sent: it may have lost its
	// carrier, of which the kernel tells only later. It runs under the lease.
	NoteRefused func()
}

// New makes an engine; Start sets its worker going, and Progress works without it.
func New(c Config) (*Engine, error) {
	e := &Engine{
		link: c.Link,
		tables: tables{
			mtu: c.MTU.Bytes(), vlan: c.VLAN, own: map[wire.GID]struct{}{}, groups: map[wire.GID][]*QP{}, qps: new([maxQPs]*QP),
		},
		tx: departure{frame: make([]byte, wire.MaxHeaders+wire.MTU4096.Bytes()+wire.MaxTrailer)},
	}
	if e.noteRefused = c.NoteRefused; e.noteRefused == nil {
		e.noteRefused = func() {}
	}
	if err := e.worker.init(c.Worker, c.Link.Descriptors()); err != nil {
		return nil, err
	}
	return e, nil
}
