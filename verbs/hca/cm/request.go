// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// Request is a peer's request, queued by a listener, for the number of the queue pair that serves it. Its owner replies
// once.
type Request struct {
	Service      wire.ServiceID
	Path         Path           // of the reply
	Source, Dest netip.AddrPort // from the address header: the peer's, and ours
	PrivateData  [RequestData]byte

	manager *Manager
	key     requestKey
	replied bool
	answer  wire.SIDRRep
	forget  time.Time
}

// requestKey is the part that a request has in common only with its retries.
type requestKey struct {
	sender    wire.GID
	requestID uint32
	tid       uint64
}

// Answer is the answer to a request. The queue pair is valid only with wire.SIDRValid.
type Answer struct {
	Status      wire.SIDRStatus
	QPN         wire.QPN
	QKey        wire.QKey
	PrivateData []byte // at most ReplyData bytes; in an event always ReplyData bytes
}

// request handles a SIDR_REQ.
func (m *Manager) request(now time.Time, path Path, mad wire.MAD) {
	asked := mad.SIDRReq()
	key := requestKey{path.Remote, asked.RequestID, mad.Header().TransactionID}
	source, dest, ok := addresses(path, asked.ServiceID, asked.PrivateData[:])
	switch known := m.requests[key]; {
	case known != nil:
		m.counters[Duplicates]++
		known.sendReply()
	case len(m.listeners[listenerKey{service: asked.ServiceID}]) == 0:
		m.counters[NoListener]++
		m.refuseSIDR(now, path, mad, wire.SIDRNotSupported)
	case !ok:
		m.counters[BadAddress]++
		m.refuseSIDR(now, path, mad, wire.SIDRReject)
	default:
		m.offer(now, mad, &Request{
			Service: asked.ServiceID, Path: path.answer(), Source: source, Dest: dest,
			PrivateData: [RequestData]byte(asked.PrivateData[wire.CMAddressLen:]), manager: m, key: key,
		})
	}
}

// addresses reads the address header in a request's private data; ok is false if it cannot be read, or does not match
// the path. For the card's own messages, a loopback address matches.
func addresses(path Path, service wire.ServiceID, privateData []byte) (source, dest netip.AddrPort, ok bool) {
	a, ok := wire.CMAddressOf(privateData)
	source, dest = unmap(a.Source), unmap(netip.AddrPortFrom(a.Destination, service.Port()))
	looped := path.Local == path.Remote
	return source, dest, ok && isAt(dest.Addr(), path.Local, looped) && isAt(source.Addr(), path.Remote, looped)
}

func isAt(a netip.Addr, gid wire.GID, looped bool) bool {
	return wire.GIDFromAddr(a) == gid || looped && a.IsLoopback()
}

// offer passes a request to its listener, if there is one with room.
func (m *Manager) offer(now time.Time, mad wire.MAD, r *Request) {
	switch l := m.listenerFor(listenerKey{service: r.Service}, r.Dest.Addr()); {
	case l == nil:
		m.counters[NoListener]++
		m.refuseSIDR(now, r.Path, mad, wire.SIDRReject)
	case !l.hasRoom(r.Path.Remote):
		m.counters[BacklogFull]++
	default:
		m.counters[Requests]++
		m.requests[r.key] = r
		l.add(r)
	}
}

func (r *Request) sender() wire.GID { return r.Path.Remote }

// turnAway refuses the request.
func (r *Request) turnAway(now time.Time) {
	_ = r.Reply(now, Answer{Status: wire.SIDRReject}) // the first reply, without private data, so it cannot fail
}

// A reply is kept as long as the kernel's manager repeats a request; at most the newest maxKept are kept.
const (
	keepReply = (DefaultRetries + 1) * DefaultTimeout
	maxKept   = 8192
)

// Reply answers the request, and its retries from now on. It returns verbs.ErrInvalid for too much private data, and if
// the request was answered before.
func (r *Request) Reply(now time.Time, a Answer) error {
	switch {
	case len(a.PrivateData) > ReplyData:
		return fmt.Errorf("%w: %d bytes of private data; a reply has room for %d", verbs.ErrInvalid, len(a.PrivateData), ReplyData)
	case r.replied:
		return fmt.Errorf("%w: the request has been answered already", verbs.ErrInvalid)
	}
	r.replied, r.forget = true, now.Add(keepReply)
	r.answer = wire.SIDRRep{RequestID: r.key.requestID, Status: a.Status, ServiceID: r.Service}
	if a.Status == wire.SIDRValid {
		r.answer.QPN, r.answer.QKey = a.QPN, a.QKey
	}
	copy(r.answer.PrivateData[:], a.PrivateData)
	if r.manager.kept.len() == maxKept {
		r.manager.forgetOldest()
	}
	r.manager.kept.push(r)
	r.sendReply()
	return nil
}

// sendReply sends the reply, if the owner has replied.
func (r *Request) sendReply() {
	if r.replied {
		r.manager.send(r.Path, func(mad wire.MAD) { mad.PutSIDRRep(r.key.tid, &r.answer) })
	}
}

// forgetOldest forgets the request with the oldest reply. A retry of it would be a new request.
func (m *Manager) forgetOldest() {
	if oldest, some := m.kept.pop(); some {
		delete(m.requests, oldest.key)
	}
}
