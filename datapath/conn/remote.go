// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"encoding/binary"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Execution of READs and atomics of the peer. Their responses are kept; see responses.go.

// takeRead records a READ and returns the number of packets of its response, which Next and Fill produce.
func (r *Responder) takeRead(p *wire.Packet) (packets uint32, s wire.Syndrome, reason Reason) {
	h := p.RETH()
	one := response{psn: r.ExpectedPSN, addr: h.Addr(), key: ib.RKey(h.RKey()), length: h.Length(), packets: packetsOf(h.Length(), r.MTU), kind: wire.MeansRead}
	if r.xrc() {
		one.srqn = p.SRQN()
	}
	switch {
	case r.message.kind != 0, r.Access&ib.AccessRemoteRead == 0, h.Length() > ring.MaxMessage:
		return 0, wire.NAKInvalidRequest, InvalidRequest
	case !r.responses.add(&one, r.MaxDestRDAtomic):
		return 0, wire.NAKInvalidRequest, InvalidRequest
	}
	if _, ok := r.QP.Remote(one.key, one.addr, one.length, ib.AccessRemoteRead); !ok {
		r.responses.takeBack()
		return 0, wire.NAKRemoteAccess, RemoteAccess
	}
	r.countMessage()
	r.responses.newest(0).msn = r.msn
	r.turn = TurnNow
	return one.packets, wire.SyndromeACK, Taken
}

// takeAtomic executes an atomic and records its response. The operation is atomic with respect to all atomics of the
// card.
func (r *Responder) takeAtomic(p *wire.Packet, kind wire.Meaning) (wire.Syndrome, Reason) {
	h := p.AtomicETH()
	one := response{psn: r.ExpectedPSN, packets: 1, kind: kind}
	switch {
	case r.message.kind != 0, r.Access&ib.AccessRemoteAtomic == 0, h.Addr()%atomicSize != 0:
		return wire.NAKInvalidRequest, InvalidRequest
	case !r.responses.add(&one, r.MaxDestRDAtomic):
		return wire.NAKInvalidRequest, InvalidRequest
	}
	memory, ok := r.QP.Remote(ib.RKey(h.RKey()), h.Addr(), atomicSize, ib.AccessRemoteAtomic)
	if !ok || len(memory) < atomicSize { // an aligned operand is contiguous
		r.responses.takeBack()
		return wire.NAKRemoteAccess, RemoteAccess
	}
	original := r.carryOutAtomic(memory, kind, h)
	r.countMessage()
	done := r.responses.newest(0)
	done.original, done.msn = original, r.msn
	r.turn = TurnNow
	return wire.SyndromeACK, Taken
}

// carryOutAtomic updates the operand in memory, and returns its previous value.
func (r *Responder) carryOutAtomic(memory []byte, kind wire.Meaning, h wire.AtomicETH) (original uint64) {
	if r.Atomics != nil {
		r.Atomics.Lock()
		defer r.Atomics.Unlock()
	}
	var number [atomicSize]byte
	readRemote(number[:], memory)
	original = binary.NativeEndian.Uint64(number[:])
	r.keepOrder() // a program may poll for the number, to detect that an earlier WRITE has arrived
	binary.NativeEndian.PutUint64(number[:], h.SwapAdd())
	switch {
	case kind == wire.MeansFetchAdd:
		binary.NativeEndian.PutUint64(number[:], original+h.SwapAdd())
		writeTail(memory[:atomicSize], number[:])
	case original == h.Compare():
		writeTail(memory[:atomicSize], number[:])
	}
	return original
}
