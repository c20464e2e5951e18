package cm

import (
	"container/heap"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// RequestData and ReplyData are the room for private data, in bytes: of a request behind the address
// header, and of a reply.
const (
	RequestData = len(wire.SIDRReq{}.PrivateData) - wire.CMAddressLen
	ReplyData   = len(wire.SIDRRep{}.PrivateData)
)

// The kernel's, for AskConfig: 16 tries of 2¹² ms.
const (
	DefaultTimeout = 4096 * time.Millisecond
	DefaultRetries = 15
)

// AskConfig is what Ask asks, and how.
type AskConfig struct {
	Path         Path
	Service      wire.ServiceID // with the peer's port
	Source, Dest netip.AddrPort // for the address header: who asks, and whom
	PrivateData  []byte         // at most RequestData bytes
	Timeout      time.Duration  // of a try; 0 stands for DefaultTimeout
	Retries      int            // tries after the first; 0 stands for DefaultRetries, below 0 there are none
	Owner        any            // of the events
}

// Inquiry is a request that was sent and has not been answered yet: for the queue pair of a peer that
// serves datagrams.
type Inquiry struct {
	manager *Manager
	config  AskConfig
	tid     uint64
	message wire.SIDRReq
	retries int // that are left
	at      time.Time
	place   int // in the heap of timers; below 0 when the inquiry has ended
}

// Ask sends a request, and repeats it until it is answered. It ends with one event, EventReply or
// EventTimeout, or by Cancel. verbs.ErrInvalid for too much private data, or addresses of two IP versions.
func (m *Manager) Ask(now time.Time, c AskConfig) (*Inquiry, error) {
	c.Source, c.Dest = unmap(c.Source), unmap(c.Dest)
	switch {
	case len(c.PrivateData) > RequestData:
		return nil, fmt.Errorf("%w: %d bytes of private data; a request has room for %d", verbs.ErrInvalid, len(c.PrivateData), RequestData)
	case !c.Source.IsValid() || c.Source.Addr().Is4() != c.Dest.Addr().Is4() || !c.Dest.IsValid():
		return nil, fmt.Errorf("%w: a request from %v to %v, which are not of one IP version", verbs.ErrInvalid, c.Source, c.Dest)
	}
	q := &Inquiry{manager: m, config: c, tid: m.random(), retries: c.retries()}
	q.message = wire.SIDRReq{RequestID: m.newRequestID(), PKey: wire.PKeyDefault, ServiceID: c.Service}
	header := wire.CMAddress{Source: c.Source, Destination: c.Dest.Addr()}
	header.Put(q.message.PrivateData[:])
	copy(q.message.PrivateData[wire.CMAddressLen:], c.PrivateData)
	q.config.PrivateData = nil // it is the caller's
	m.inquiries[q.message.RequestID] = q
	q.at = now.Add(q.timeout())
	heap.Push(&m.timers, q)
	q.send()
	return q, nil
}

// unmap makes an IPv4-mapped address one of IPv4.
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

// newRequestID finds an id that no inquiry has.
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

// Cancel ends the inquiry without an event, but for one that NextEvent will give because it was there
// already. Nothing happens if it has ended.
func (q *Inquiry) Cancel() {
	if q.place >= 0 {
		heap.Remove(&q.manager.timers, q.place)
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
	if q.retries == 0 {
		q.manager.counters[Timeouts]++
		q.end(Event{Kind: EventTimeout})
		return
	}
	q.retries--
	q.at = now.Add(q.timeout())
	heap.Fix(&q.manager.timers, q.place)
	q.manager.counters[Retries]++
	q.send()
}

// reply takes a SIDR_REP. It counts if the peer that was asked repeats both numbers of the request.
func (m *Manager) reply(path Path, mad wire.MAD) {
	rep := mad.SIDRRep()
	q := m.inquiries[rep.RequestID]
	if q == nil || q.tid != mad.Header().TransactionID || q.config.Path.Remote != path.Remote || q.config.Path.Local != path.Local {
		m.counters[Stray]++
		return
	}
	m.counters[Replies]++
	q.end(Event{Kind: EventReply, Answer: Answer{Status: rep.Status, QPN: rep.QPN, QKey: rep.QKey, PrivateData: rep.PrivateData[:]}})
}

// timers are the inquiries by the end of their tries: a heap.
type timers []*Inquiry

func (t timers) first() (at time.Time, some bool) {
	if len(t) == 0 {
		return at, false
	}
	return t[0].at, true
}

// due is an inquiry whose time has come; nil if there is none.
func (t timers) due(now time.Time) *Inquiry {
	if at, some := t.first(); some && !at.After(now) {
		return t[0]
	}
	return nil
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}

func (t *timers) Push(q any) {
	*t = append(*t, q.(*Inquiry))
	(*t)[len(*t)-1].place = len(*t) - 1
}

func (t *timers) Pop() any {
	last := len(*t) - 1
	q := (*t)[last]
	(*t)[last] = nil
	*t, q.place = (*t)[:last], -1
	return q
}
