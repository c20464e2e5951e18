// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/timers"
	"github.com/roced/roced/verbs"
)

// RequestData and ReplyData are the maximum lengths of private data, in bytes: of a request after the address header,
// and of a reply.
const (
	RequestData = len(wire.SIDRReq{}.PrivateData) - wire.CMAddressLen
	ReplyData   = len(wire.SIDRRep{}.PrivateData)
)

// Defaults of AskConfig, as in the kernel: 16 tries of 2¹² ms.
const (
	DefaultTimeout = 4096 * time.Millisecond
	DefaultRetries = 15
)

// AskConfig has the parameters of Ask.
type AskConfig struct {
	Path         Path
	Service      wire.ServiceID // with the peer's port
	Source, Dest netip.AddrPort // for the address header: this side and the peer
	PrivateData  []byte         // at most RequestData bytes
	Timeout      time.Duration  // per try; 0 stands for DefaultTimeout
	Retries      int            // tries after the first; 0 stands for DefaultRetries, a negative value for none
	Owner        any            // of the events
}

// Inquiry is a request without an answer yet, for the queue pair of a peer that serves datagrams.
type Inquiry struct {
	manager *Manager
	config  AskConfig
	tid     uint64
	message wire.SIDRReq
	retries int // remaining retries
	timer   timers.Timer[func(now time.Time)]
}

// Ask sends a request, and repeats it until it is answered. It ends with one event, EventReply or EventTimeout, or by
// Cancel. It returns verbs.ErrInvalid for too much private data, or addresses of two IP versions.
func (m *Manager) Ask(now time.Time, c AskConfig) (*Inquiry, error) {
	c.Source, c.Dest = unmap(c.Source), unmap(c.Dest)
	if len(c.PrivateData) > RequestData {
		return nil, fmt.Errorf("%w: %d bytes of private data; a request has room for %d", verbs.ErrInvalid, len(c.PrivateData), RequestData)
	}
	if err := oneVersion(c.Source, c.Dest); err != nil {
		return nil, err
	}
	q := &Inquiry{manager: m, config: c, tid: m.random(), retries: c.retries()}
	q.message = wire.SIDRReq{RequestID: m.newRequestID(), PKey: wire.PKeyDefault, ServiceID: c.Service}
	header := wire.CMAddress{Source: c.Source, Destination: c.Dest.Addr()}
	header.Put(q.message.PrivateData[:])
	copy(q.message.PrivateData[wire.CMAddressLen:], c.PrivateData)
	q.config.PrivateData = nil // it belongs to the caller
	m.inquiries[q.message.RequestID] = q
	q.timer.Of = q.expire
	m.timers.Set(&q.timer, now.Add(q.timeout()))
	q.send()
	return q, nil
}

// oneVersion rejects addresses of two IP versions.
func oneVersion(source, dest netip.AddrPort) error {
	if !source.IsValid() || source.Addr().Is4() != dest.Addr().Is4() || !dest.IsValid() {
		return fmt.Errorf("%w: a request from %v to %v, which are not of one IP version", verbs.ErrInvalid, source, dest)
	}
	return nil
}

// unmap converts an IPv4-mapped address to IPv4.
func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

func (c *AskConfig) retries() int {
	if c.Retries == 0 {
		return DefaultRetries
	}
	return max(c.Retries, 0)
}

func (q *Inquiry) timeout() time.Duration {
	if q.config.Timeout <= 0 {
		return DefaultTimeout
	}
	return q.config.Timeout
}

// newRequestID returns an unused id.
func (m *Manager) newRequestID() uint32 {
	for {
		id := uint32(m.random())
		if _, taken := m.inquiries[id]; !taken {
			return id
		}
	}
}

func (q *Inquiry) send() {
	q.manager.send(q.config.Path, func(mad wire.MAD) { mad.PutSIDRReq(q.tid, &q.message) })
}

// Cancel ends the inquiry without an event, except one that is already queued. It has no effect if the inquiry has
// ended.
func (q *Inquiry) Cancel() {
	q.manager.timers.Stop(&q.timer)
	if q.manager.inquiries[q.message.RequestID] == q {
		delete(q.manager.inquiries, q.message.RequestID)
	}
}

func (q *Inquiry) end(e Event) {
	q.Cancel()
	e.Owner = q.config.Owner
	q.manager.tell(e)
}

// expire repeats the request, or gives up.
func (q *Inquiry) expire(now time.Time) {
	q.manager.hand = q.config.Owner
	if q.retries == 0 {
		q.manager.counters[Timeouts]++
		q.end(Event{Kind: EventTimeout})
		return
	}
	q.retries--
	q.manager.timers.Set(&q.timer, now.Add(q.timeout()))
	q.manager.counters[Retries]++
	q.send()
}

// reply handles a SIDR_REP. It is valid if it comes from the peer and has both numbers of the request.
func (m *Manager) reply(path Path, mad wire.MAD) {
	rep := mad.SIDRRep()
	q := m.inquiries[rep.RequestID]
	if q == nil || q.tid != mad.Header().TransactionID || q.config.Path.Remote != path.Remote || q.config.Path.Local != path.Local {
		m.counters[Stray]++
		return
	}
	m.hand = q.config.Owner
	m.counters[Replies]++
	q.end(Event{Kind: EventReply, Answer: Answer{Status: rep.Status, QPN: rep.QPN, QKey: rep.QKey, PrivateData: rep.PrivateData[:]}})
}
