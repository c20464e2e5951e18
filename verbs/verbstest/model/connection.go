// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// The model of a connection: the effect of its requests on two memories and two lists of receives. A request
// is carried out when it is posted, one after the other.

// modelEnd is a queue pair that is connected to another, and a region that is all that it uses.
type modelEnd struct {
	unreliable bool
	mtu        int
	access     verbs.AccessFlags // of the queue pair
	rights     verbs.AccessFlags // of the region
	memory     []byte
	fast       modelFast
	recvs      []modelPlace
	state      verbs.QPState // RTS or, after an error, ERR; of UC after one of its own, SQE

	done  []rig.Outcome   // completions that it has
	event verbs.EventType // that it has, unless it is noEvent
}

// modelPlace is a part of a region that a request or a receive names.
type modelPlace struct {
	id         uint64
	from, size int
	bad        bool // the key is another

	by        modelBy
	direction kernel.DMADirection // of byMapping
	key       uint8               // of byFast
}

// modelTask is a request: an operation on a part of each region.
type modelTask struct {
	op         verbs.Opcode
	own, peers modelPlace
	compareAdd uint64
	swap       uint64
	reg        *modelFast // of WRRegMR
	key        uint8      // that is to be invalidated
	base       uint64     // of the peer's region
}

// isLocal reports whether a status is detected locally by an unreliable queue pair.
func isLocal(s verbs.WCStatus) bool {
	return s == verbs.WCLocProtErr || s == verbs.WCMWBindErr || s == verbs.WCLocQPOpErr
}

// carryOut executes requests, and records the completions at both ends. It returns the number of requests up to a
// SEND that ends the peer and is acknowledged: those behind it would wait for their retries.
func (e *modelEnd) carryOut(peer *modelEnd, tasks []modelTask) (posted int) {
	posted = len(tasks)
	for i := 0; i < posted; i++ {
		task := &tasks[i]
		if e.state != verbs.QPStateRTS {
			e.done = append(e.done, rig.Flushed(task.own.id))
			continue
		}
		status := e.do(peer, task)
		if e.unreliable && !isLocal(status) {
			status = verbs.WCSuccess // the peer does not respond
		}
		e.done = append(e.done, rig.Ended(task.own.id, status))
		switch {
		case status != verbs.WCSuccess && e.unreliable:
			e.state = verbs.QPStateSQE
		case status != verbs.WCSuccess:
			e.state = verbs.QPStateErr
		case peer.state == verbs.QPStateErr && !e.unreliable:
			posted = i + 1
		}
	}
	for _, end := range []*modelEnd{e, peer} {
		if end.state == verbs.QPStateErr {
			for _, recv := range end.recvs {
				end.done = append(end.done, rig.Flushed(recv.id))
			}
			end.recvs = nil
		}
	}
	return posted
}

// do carries one request out.
func (e *modelEnd) do(peer *modelEnd, t *modelTask) verbs.WCStatus {
	switch {
	case t.op == verbs.WRRegMR:
		return e.register(t.reg)
	case t.op == verbs.WRLocalInv && !e.invalidate(t.key, false):
		return verbs.WCMWBindErr
	case t.op == verbs.WRLocalInv:
		return verbs.WCSuccess
	case !e.may(&t.own, t.op == verbs.WRRDMARead || isAtomicOp(t.op)):
		return verbs.WCLocProtErr
	case peer.state == verbs.QPStateErr:
		return verbs.WCRetryExcErr // of UC: it is not told
	}
	data := e.read(&t.own)
	switch t.op {
	case verbs.WRSend, verbs.WRSendWithImm, verbs.WRSendWithInv:
		return peer.takeSend(data, t)
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm:
		return peer.takeWrite(data, t)
	case verbs.WRRDMARead:
		if status := peer.check(&t.peers, verbs.AccessRemoteRead, true); status != verbs.WCSuccess {
			return status
		}
		if t.own.size > 0 {
			e.write(&t.own, 0, peer.read(&t.peers))
		}
		return verbs.WCSuccess
	}
	status := peer.takeAtomic(data, t)
	if status == verbs.WCSuccess {
		e.write(&t.own, 0, data)
	}
	return status
}

// fail is what becomes of the peer when it refuses a request with a NAK.
func (e *modelEnd) fail(status verbs.WCStatus, event verbs.EventType) verbs.WCStatus {
	if !e.unreliable {
		e.state, e.event = verbs.QPStateErr, event
	}
	return status
}

// check reports whether a peer may access a place; tells: an event reports it.
func (e *modelEnd) check(p *modelPlace, access verbs.AccessFlags, tells bool) verbs.WCStatus {
	switch {
	case e.access&access == 0:
		return e.fail(verbs.WCRemInvReqErr, verbs.EventQPReqErr)
	case p.size == 0:
		return verbs.WCSuccess
	case !e.reachable(p, access):
		if !tells {
			return e.fail(verbs.WCRemAccessErr, rig.NoEvent)
		}
		return e.fail(verbs.WCRemAccessErr, verbs.EventQPAccessErr)
	}
	return verbs.WCSuccess
}

// reachable reports whether a peer may use a place.
func (e *modelEnd) reachable(p *modelPlace, access verbs.AccessFlags) bool {
	if f := &e.fast; p.by == byFast {
		return !p.bad && f.valid && f.key == p.key && p.from+p.size <= f.size() && f.access&access != 0
	}
	return !p.bad && e.rights&access != 0 && p.from+p.size <= len(e.memory)
}

// complete ends the oldest receive.
func (e *modelEnd) complete(status verbs.WCStatus) {
	e.done = append(e.done, rig.Ended(e.recvs[0].id, status))
	e.recvs = e.recvs[1:]
}

// takeSend puts a message into the oldest receive. The received part of a message that is too long is stored.
func (e *modelEnd) takeSend(data []byte, t *modelTask) verbs.WCStatus {
	if len(e.recvs) == 0 {
		return verbs.WCRNRRetryExcErr
	}
	recv := e.recvs[0]
	for from := 0; from < len(data) || from == 0; from += e.mtu {
		packet := data[from:min(from+e.mtu, len(data))]
		switch {
		case from+len(packet) > recv.size:
			if !e.unreliable {
				e.complete(verbs.WCLocLenErr)
			}
			return e.fail(verbs.WCRemInvReqErr, rig.NoEvent)
		case !e.may(&recv, true):
			e.complete(verbs.WCLocProtErr)
			e.state = verbs.QPStateErr
			return verbs.WCRemOpErr
		}
		e.write(&recv, from, packet)
	}
	if t.op == verbs.WRSendWithInv && !e.invalidate(t.key, true) {
		e.complete(verbs.WCRemInvReqErr)
		e.state = verbs.QPStateErr
		return verbs.WCSuccess // it has arrived
	}
	e.complete(verbs.WCSuccess)
	return verbs.WCSuccess
}

// takeWrite writes. Immediate data comes with the last packet, and takes a receive before that is looked at.
func (e *modelEnd) takeWrite(data []byte, t *modelTask) verbs.WCStatus {
	imm, single := t.op == verbs.WRRDMAWriteWithImm, len(data) <= e.mtu
	if imm && single && len(e.recvs) == 0 && e.access&verbs.AccessRemoteWrite != 0 {
		return verbs.WCRNRRetryExcErr
	}
	if status := e.check(&t.peers, verbs.AccessRemoteWrite, !imm || !single); status != verbs.WCSuccess {
		if imm && single && status == verbs.WCRemAccessErr && !e.unreliable {
			e.complete(verbs.WCLocAccessErr)
		}
		return status
	}
	whole := len(data)
	if imm && len(e.recvs) == 0 {
		whole = (whole - 1) / e.mtu * e.mtu // all packets except the last
	}
	if whole > 0 {
		e.write(&t.peers, 0, data[:whole])
	}
	switch {
	case !imm:
	case len(e.recvs) == 0:
		return verbs.WCRNRRetryExcErr
	default:
		e.complete(verbs.WCSuccess)
	}
	return verbs.WCSuccess
}

// takeAtomic executes an atomic, and returns the previous value.
func (e *modelEnd) takeAtomic(data []byte, t *modelTask) verbs.WCStatus {
	if (t.base+uint64(t.peers.from))%atomicLen != 0 {
		return e.fail(verbs.WCRemInvReqErr, verbs.EventQPReqErr)
	}
	if status := e.check(&t.peers, verbs.AccessRemoteAtomic, true); status != verbs.WCSuccess {
		return status
	}
	if !e.together(&t.peers) {
		return e.fail(verbs.WCRemAccessErr, verbs.EventQPAccessErr)
	}
	there := e.memory[e.index(&t.peers, 0):][:atomicLen]
	was := binary.NativeEndian.Uint64(there)
	copy(data, there)
	switch {
	case t.op == verbs.WRAtomicFetchAndAdd:
		binary.NativeEndian.PutUint64(there, was+t.compareAdd)
	case was == t.compareAdd:
		binary.NativeEndian.PutUint64(there, t.swap)
	}
	return verbs.WCSuccess
}

const atomicLen = 8
