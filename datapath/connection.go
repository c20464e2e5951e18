package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// Connection is what a connected queue pair (RC, UC) knows of its peer, and how far the two are. The
// control plane sets the exported fields in Do: those of the peer before RTR, the others at any time.
type Connection struct {
	PeerQPN  wire.QPN
	Peer     wire.GID // whose packets are taken
	Path     *Path
	Template wire.Template // without Ethernet addresses: those are in Path
	MTU      wire.MTU      // of the path

	Access          ring.AccessFlags // what the peer may do: remote read, write, atomic
	ExpectedPSN     wire.PSN         // of the next request from the peer; set before RTR
	MinRNRTimer     uint8            // code of 5 bits that a peer is told when no receive is posted
	MaxDestRDAtomic uint8            // reads and atomics of the peer's that may be outstanding here

	Timeout     uint8 // 4.096 µs × 2ⁿ; 0 is for ever
	RetryCnt    uint8 // 0 to 7
	RNRRetry    uint8 // 0 to 7; 7 is for ever
	MaxRDAtomic uint8 // own reads and atomics that may be outstanding
}
