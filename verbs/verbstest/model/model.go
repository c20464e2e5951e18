// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
)

// The model is a minimal implementation of the semantics of cards: queues are lists, a packet arrives when it is sent,
// and a request takes effect when it is posted. It follows the specification (IBA volume 1, chapters 9 to 11; the
// manual pages of libibverbs; rdmavt for groups), and is independent of the Provider that Run compares with it.
//
//	wr.go          requests: the checks of a post, and those of the card
//	state.go       states of a queue pair, modify, flush
//	send.go        execution of a request: checks, gather, packet
//	recv.go        arrival of a packet: queue pair or group, checks, scatter
//	srq.go         shared receive queues
//	cq.go          completions, overrun, poll
//	connection.go  effect of a connection's requests at both ends
//
// Where the specification defines no order, the model has one, which its comments state.

const (
	grhLen      = 40 // bytes before a message in the memory of a receive
	defaultHops = 64 // hop limit of an address handle with hop limit 0
)

// modelWorld contains the cards of a network. Each has one program.
type modelWorld struct {
	cards []*modelCard
	mtu   int // bytes of payload

	// State of the current step:
	failed   []*modelQP // queue pairs that an overrun failed, and that have not been flushed
	arrivals []modelArrival
	wave     int // see modelWC
	overran  bool
}

// modelCard is a card with its program's objects.
type modelCard struct {
	world  *modelWorld
	mac    verbs.MAC
	own    map[verbs.GID]bool
	qps    map[verbs.QPN]*modelQP
	mrs    map[verbs.LKey]*modelMR
	groups map[verbs.GID]*modelGroup
	events map[modelEvent]bool
	drops  map[string]uint64 // packets that were not delivered, by reason
}

// modelEvent is an unread event. The same event is queued once.
type modelEvent struct {
	kind verbs.EventType
	cq   *modelCQ
	srq  *modelSRQ
	qp   *modelQP
}

// modelPD is a protection domain with the number of its objects.
type modelPD struct{ users int }

// modelMR is a memory region.
type modelMR struct {
	pd      *modelPD
	lkey    verbs.LKey
	base    uint64 // its first address
	memory  []byte
	unknown []bool // bytes of memory that contain a GRH of this step; finishStep reads them from the Provider
	write   bool   // has local write access
}

// newMemory replaces the region's memory by zeros.
func (m *modelMR) newMemory(length int) {
	m.memory, m.unknown = make([]byte, length), make([]bool, length)
}

// modelAH is an address handle.
type modelAH struct {
	pd     *modelPD
	source verbs.GID
	route  verbs.GlobalRoute
	closed bool
}

// modelGroup is a multicast group of a card: its queue pairs in the order of attachment.
type modelGroup struct {
	mlid    verbs.MLID
	members []*modelQP
}

// modelQP is a queue pair.
type modelQP struct {
	card           *modelCard
	pd             *modelPD
	number         verbs.QPN
	sendCQ, recvCQ *modelCQ
	srq            *modelSRQ // nil if the queue pair has its own receive queue
	cap            verbs.QPCap
	sigAll, block  bool // sq_sig_all; IBV_QP_CREATE_BLOCK_SELF_MCAST_LB
	groups         int  // number of groups that it is attached to

	state verbs.QPState
	qkey  verbs.QKey
	port  uint8
	psn   verbs.PSN // of the next packet

	sends []*modelSend // not executed by the card
	recvs []*modelRecv // not consumed by a packet
	// Unpolled completions. Their requests still occupy a slot.
	sendsDone, recvsDone int
}

// newModelQP creates a queue pair in RESET.
func newModelQP(card *modelCard, pd *modelPD, init modelQP) *modelQP {
	q := &init
	q.card, q.pd = card, pd
	pd.users++
	q.sendCQ.users++
	q.recvCQ.users++
	if q.srq != nil {
		q.srq.users++
	}
	card.qps[q.number] = q
	return q
}

// close destroys the queue pair with its requests and completions, or returns false if it is attached to a group.
func (q *modelQP) close() bool {
	if q.groups > 0 {
		return false
	}
	q.empty()
	q.pd.users--
	q.sendCQ.users--
	q.recvCQ.users--
	if q.srq != nil {
		q.srq.users--
	}
	delete(q.card.qps, q.number)
	for _, kind := range []verbs.EventType{verbs.EventQPFatal, verbs.EventSQDrained, verbs.EventQPLastWQEReached} {
		delete(q.card.events, modelEvent{kind: kind, qp: q})
	}
	return true
}

// empty discards all requests and unpolled completions.
func (q *modelQP) empty() {
	q.sends, q.recvs, q.sendsDone, q.recvsDone = nil, nil, 0, 0
	q.sendCQ.forget(q)
	q.recvCQ.forget(q)
}

// attach attaches the queue pair to a group. It returns false in RESET, for an invalid group, and for a second MLID of
// an MGID. A second attachment has no effect.
func (q *modelQP) attach(mgid verbs.GID, mlid verbs.MLID) bool {
	group := q.card.groups[mgid]
	switch {
	case q.state == verbs.QPStateReset, !mgid.IsMulticast(), group != nil && group.mlid != mlid:
		return false
	case group == nil:
		group = &modelGroup{mlid: mlid}
		q.card.groups[mgid] = group
	case group.has(q):
		return true
	}
	group.members = append(group.members, q)
	q.groups++
	return true
}

// detach detaches the queue pair. It returns false for a group that is not attached with this MLID, and in RESET unless
// an overrun CQ keeps the queue pair there.
func (q *modelQP) detach(mgid verbs.GID, mlid verbs.MLID) bool {
	group := q.card.groups[mgid]
	if q.state == verbs.QPStateReset && !q.overrun() || group == nil || group.mlid != mlid || !group.has(q) {
		return false
	}
	var rest []*modelQP
	for _, member := range group.members {
		if member != q {
			rest = append(rest, member)
		}
	}
	if group.members = rest; len(rest) == 0 {
		delete(q.card.groups, mgid)
	}
	q.groups--
	return true
}

func (g *modelGroup) has(q *modelQP) bool {
	for _, member := range g.members {
		if member == q {
			return true
		}
	}
	return false
}
