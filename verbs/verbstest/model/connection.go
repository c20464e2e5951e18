// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// The model of a connection: the effect of requests on the memory and the receives of both ends. Each request is
// executed when it is posted.

// modelEnd is a connected queue pair, and the only region that it uses.
type modelEnd struct {
	unreliable bool
	mtu        int
	access     verbs.AccessFlags // of the queue pair
	rights     verbs.AccessFlags // of the region
	memory     []byte
	fast       modelFast
	recvs      []modelPlace
	state      verbs.QPState // RTS; after an error ERR, or SQE after a local error of UC

	done  []rig.Outcome   // expected completions
	event verbs.EventType // expected event, or rig.NoEvent
}

// modelPlace is a part of a region that a request or a receive names.
type modelPlace struct {
	id         uint64
	from, size int
	bad        bool // the key is invalid

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
	key        uint8      // the key to invalidate
	base       uint64     // first address of the peer's region
}

// isLocal reports whether an unreliable queue pair detects an error with this status itself.
func isLocal(s verbs.WCStatus) bool {
	return s == verbs.WCLocProtErr || s == verbs.WCMWBindErr || s == verbs.WCLocQPOpErr
}

// execute executes requests, and records the completions at both ends. It stops after an acknowledged SEND that moved
// the peer to ERR, since later requests would wait for their retries, and returns the number of executed requests.
func (e *modelEnd) execute(peer *modelEnd, tasks []modelTask) (posted int) {
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

// do executes a request.
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
		return verbs.WCRetryExcErr // UC has no error: the caller ignores it
	}
	data := e.read(&t.own)
	switch t.op {
	case verbs.WRSend, verbs.WRSendWithImm, verbs.WRSendWithInv:
		return peer.receiveSend(data, t)
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm:
		return peer.receiveWrite(data, t)
	case verbs.WRRDMARead:
		if status := peer.check(&t.peers, verbs.AccessRemoteRead, true); status != verbs.WCSuccess {
			return status
		}
		if t.own.size > 0 {
			e.write(&t.own, 0, peer.read(&t.peers))
		}
		return verbs.WCSuccess
	}
	status := peer.executeAtomic(data, t)
	if status == verbs.WCSuccess {
		e.write(&t.own, 0, data)
	}
	return status
}

// fail changes the responder to ERR after an error, with an event, and returns the requester's status. UC only drops
// the request.
func (e *modelEnd) fail(status verbs.WCStatus, event verbs.EventType) verbs.WCStatus {
	if !e.unreliable {
		e.state, e.event = verbs.QPStateErr, event
	}
	return status
}

// check returns the status of a peer's access to a place. With notify, an event reports an access error.
func (e *modelEnd) check(p *modelPlace, access verbs.AccessFlags, notify bool) verbs.WCStatus {
	switch {
	case e.access&access == 0:
		return e.fail(verbs.WCRemInvReqErr, verbs.EventQPReqErr)
	case p.size == 0:
		return verbs.WCSuccess
	case !e.reachable(p, access):
		if !notify {
			return e.fail(verbs.WCRemAccessErr, rig.NoEvent)
		}
		return e.fail(verbs.WCRemAccessErr, verbs.EventQPAccessErr)
	}
	return verbs.WCSuccess
}

// reachable reports whether a peer is allowed to access a place.
func (e *modelEnd) reachable(p *modelPlace, access verbs.AccessFlags) bool {
	if f := &e.fast; p.by == byFast {
		return !p.bad && f.valid && f.key == p.key && p.from+p.size <= f.size() && f.access&access != 0
	}
	return !p.bad && e.rights&access != 0 && p.from+p.size <= len(e.memory)
}

// complete completes the oldest receive.
func (e *modelEnd) complete(status verbs.WCStatus) {
	e.done = append(e.done, rig.Ended(e.recvs[0].id, status))
	e.recvs = e.recvs[1:]
}

// receiveSend stores a message in the oldest receive. Of a message that is too long, the packets that fit are stored.
func (e *modelEnd) receiveSend(data []byte, t *modelTask) verbs.WCStatus {
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
		return verbs.WCSuccess // the message was acknowledged
	}
	e.complete(verbs.WCSuccess)
	return verbs.WCSuccess
}

// receiveWrite executes a WRITE. Immediate data is in the last packet. It consumes a receive before the last packet's
// access is checked.
func (e *modelEnd) receiveWrite(data []byte, t *modelTask) verbs.WCStatus {
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

// executeAtomic executes an atomic, and stores the previous value in data.
func (e *modelEnd) executeAtomic(data []byte, t *modelTask) verbs.WCStatus {
	if (t.base+uint64(t.peers.from))%atomicLen != 0 {
		return e.fail(verbs.WCRemInvReqErr, verbs.EventQPReqErr)
	}
	if status := e.check(&t.peers, verbs.AccessRemoteAtomic, true); status != verbs.WCSuccess {
		return status
	}
	if !e.contiguous(&t.peers) {
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
