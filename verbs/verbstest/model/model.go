// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
)

// The model is what cards mean, as small as it can be said: queues are lists, a packet arrives when
// it is sent, and a request takes effect when it is posted. It is written from the
// specification (IBA volume 1, chapters 9 to 11; the manual pages of libibverbs; rdmavt for groups),
// and knows nothing of a Provider. Run holds a Provider to it.
//
//	wr.go          requests: the checks of a post, and those of the card
//	state.go       states of a queue pair, modify, flushing
//	send.go        a request is carried out: checks, gather, packet
//	recv.go        a packet arrives: queue pair or group, checks, scatter
//	srq.go         shared receive queues
//	cq.go          completions, overrun, poll
//	connection.go  what requests of a connection do at both ends
//
// Where the specification leaves an order open, the model chooses one, and documents it.

const (
	grhLen      = 40 // bytes in front of a message, in the memory of a receive
	defaultHops = 64 // the hop limit of an address handle that names none
)

// modelWorld is the cards that reach each other. Each has one program.
type modelWorld struct {
	cards []*modelCard
	mtu   int // bytes of payload

	// Of the step in hand.
	failed   []*modelQP // by an overrun: to be flushed
	arrivals []modelArrival
	wave     int // see modelWC
	overran  bool
}

// modelCard is a card, with its program's objects.
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

// modelEvent is an event that the program has not read: each waits once.
type modelEvent struct {
	kind verbs.EventType
	cq   *modelCQ
	srq  *modelSRQ
	qp   *modelQP
}

// modelPD counts the objects in it.
type modelPD struct{ users int }

// modelMR is a memory region.
type modelMR struct {
	pd      *modelPD
	lkey    verbs.LKey
	base    uint64 // its first address
	memory  []byte
	unknown []bool // bytes of memory that hold a GRH of this step, or a copy of one: settle reads them from the Provider
	write   bool   // receives may write here
}

// newMemory gives the region new memory, all of which is known.
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

// modelGroup is a group of a card: queue pairs in the order in which they were attached.
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
	srq            *modelSRQ // nil: it has a receive queue of its own
	cap            verbs.QPCap
	sigAll, block  bool // sq_sig_all; IBV_QP_CREATE_BLOCK_SELF_MCAST_LB
	groups         int  // that it is attached to

	state verbs.QPState
	qkey  verbs.QKey
	port  uint8
	psn   verbs.PSN // of the next packet

	sends []*modelSend // that the card has not carried out
	recvs []*modelRecv // that no packet has taken
	// Completions that have not been polled. Their requests still occupy a slot.
	sendsDone, recvsDone int
}

// newModelQP makes a queue pair, in RESET.
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

// close destroys the queue pair, if nothing holds it: its requests and completions are gone.
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

// empty drops all requests, and the completions that wait.
func (q *modelQP) empty() {
	q.sends, q.recvs, q.sendsDone, q.recvsDone = nil, nil, 0, 0
	q.sendCQ.forget(q)
	q.recvCQ.forget(q)
}

// attach makes the queue pair receive messages to a group. It refuses RESET, an invalid group, and
// a second MLID of an MGID; attaching again changes nothing.
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

// detach undoes attach. It refuses RESET, unless the queue pair cannot leave it, and a group that is not
// attached with this MLID.
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
