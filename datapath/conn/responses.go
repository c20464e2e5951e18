// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// responses holds the responses that must be sent. Responses to READs and atomics are sent first, in the order of their
// requests, then one ACK or NAK for all requests before it. The last responses, up to the peer's maximum number of
// outstanding requests, are kept for retransmission.
type responses struct {
	kept    []response    // a ring buffer
	next    int           // index of the next response, which replaces the oldest
	pending int           // number of responses that are not completely sent
	due     bool          // an ACK or a NAK must be sent
	nak     wire.Syndrome // the syndrome of a NAK; zero: an ACK is due
	psn     wire.PSN      // of the ACK or NAK
}

// response is a response to a READ or an atomic.
type response struct {
	kind     wire.Meaning // of the request
	psn      wire.PSN     // of the first packet
	packets  uint32
	sent     uint32 // number of packets sent
	whole    bool   // all packets have been sent at least once
	msn      uint32
	key      ib.RKey   // READ: fields of the request, as the next three
	srqn     wire.SRQN // XRC: the SRQ whose PD the memory belongs to
	addr     uint64
	length   uint32
	original uint64 // atomic: the previous value of the operand
}

// add adds a response. It returns false if the peer exceeds its maximum number of outstanding requests.
func (r *responses) add(one *response, most uint8) bool {
	r.keep(int(most))
	if len(r.kept) == 0 {
		return false
	}
	oldest := &r.kept[r.next]
	if oldest.sent < oldest.packets {
		if !oldest.whole {
			return false
		}
		r.pending-- // it is being repeated for an old duplicate: the peer has proceeded since
	}
	*oldest = *one
	r.next = (r.next + 1) % len(r.kept)
	r.pending++
	return true
}

// keep resizes the ring to most responses, or more if more have not been completely sent. most may change in SQD, while
// the peer waits for responses.
func (r *responses) keep(most int) {
	if len(r.kept) == most {
		return
	}
	owed := 0
	for i := range r.kept {
		if one := &r.kept[i]; !one.whole && one.packets > 0 {
			owed++
		}
	}
	if most = max(most, owed); len(r.kept) == most {
		return
	}
	old := *r
	r.kept, r.next, r.pending = make([]response, most), 0, 0
	for i := range min(most, len(old.kept)) {
		one := old.newest(i)
		r.kept[most-1-i] = *one
		if one.sent < one.packets {
			r.pending++
		}
	}
}

// takeBack removes the newest response, which has not been sent.
func (r *responses) takeBack() {
	newest := r.newest(0)
	*newest = response{}
	r.next = (r.next + len(r.kept) - 1) % len(r.kept)
	r.pending--
}

// newest returns the newest response if than is 0, and otherwise the response that is followed by than newer ones.
func (r *responses) newest(than int) *response {
	return &r.kept[(r.next+len(r.kept)-1-than)%len(r.kept)]
}

// first returns the oldest response that is not completely sent; nil if all are sent.
func (r *responses) first() *response {
	if r.pending == 0 {
		return nil
	}
	for _, part := range [2][]response{r.kept[r.next:], r.kept[:r.next]} {
		for i := range part {
			if one := &part[i]; one.sent < one.packets {
				return one
			}
		}
	}
	r.pending = 0
	return nil
}

// find returns the response that includes the PSN; nil if it is not kept.
func (r *responses) find(psn wire.PSN) *response {
	for i := range r.kept {
		if one := r.newest(i); one.packets > 0 && uint32(psn-one.psn)&uint32(wire.PSNMask) < one.packets {
			return one
		}
	}
	return nil
}
