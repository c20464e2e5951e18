package server

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// looks are the commands of those who look, by their codes. They need no session.
var looks = tableOf(
	shows(proto.ListClients, (*connection).listClients),
	shows(proto.ListObjects, (*connection).listObjects),
	shows(proto.ListIDs, (*connection).listIDs),
	shows(proto.ReadCounters, (*connection).readCounters),
	shows(proto.LookDevice, (*connection).lookDevice),
	handler{proto.NextEvents.Number, monitorEvents},
	handler{proto.StartCapture.Number, startCapture},
	shows(proto.AddSocket, (*connection).addSocket),
	shows(proto.RemoveSocket, (*connection).removeSocket),
)

// shows returns the handler of a command that needs no session. Its connection may be without one for long.
func shows[Q, G any](command proto.Command[Q, G], do func(*connection, Q) (G, error)) handler {
	return handler{command.Number, func(c *connection, m proto.Message) error {
		request, err := command.DecodeRequest(m.Body)
		if err != nil {
			return err
		}
		if err := c.socket.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		grant, err := do(c, request)
		return answer(c, command.Untyped, m, &grant, err)
	}}
}

// seesAll reports whether a peer may see what is others': root, and the service's own user.
func (p *peer) seesAll() bool { return !p.confined && (p.uid == 0 || p.uid == uint32(os.Geteuid())) }

// seesOf reports whether a client may see what is another's: who is confined, what is in its own namespace alone.
func (c *connection) seesOf(other *connection) bool {
	if c.peer.door != other.peer.door && !c.peer.seesAll() {
		return false
	}
	if c.peer.confined && c.peer.door == "" && !c.sameNamespace(other) {
		return c == other
	}
	return c.peer.seesAll() || other.peer.uid == c.peer.uid
}

// seen are the connections that the client may see, from a number on, by their numbers.
func (c *connection) seen(from uint64) (list []*connection) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.connections {
		if other.number >= from && c.seesOf(other) {
			list = append(list, other)
		}
	}
	slices.SortFunc(list, func(a, b *connection) int { return cmp.Compare(a.number, b.number) })
	return list
}

// use is the session of a connection, nil if there is none, and its device's name.
func (c *connection) use() (*hca.Session, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.device
}

func (c *connection) listClients(r proto.ListClientsRequest) (grant proto.ClientList, _ error) {
	for _, other := range c.seen(r.After + 1) {
		if grant.More = len(grant.Clients) == proto.PageEntries; grant.More {
			break
		}
		grant.Clients = append(grant.Clients, other.info())
	}
	return grant, nil
}

// info is what there is to say about a client.
func (c *connection) info() proto.ClientInfo {
	peer := &c.peer // another goroutine may write confined
	session, device := c.use()
	info := proto.ClientInfo{
		Number: c.number, PID: uint32(peer.pid), UID: peer.uid, Owner: peer.owner, Command: commandOf(peer.pid), Device: device, Since: uint64(c.since.UnixNano()),
	}
	if session == nil {
		return info
	}
	u := session.Used()
	info.PDs, info.MRs, info.CQs, info.QPs, info.SRQs = uint32(u.PDs), uint32(u.MRs), uint32(u.CQs), uint32(u.QPs), uint32(u.SRQs)
	info.AHs, info.Channels, info.Members, info.Attached = uint32(u.AHs), uint32(u.CompChannels), uint32(u.Memberships), uint32(u.Attachments)
	info.MemorySize = u.Memory
	return info
}

// commandOf is a process's name; empty if the service cannot see it.
func commandOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSuffix(string(text), "\n"), "?")
}

// slots are small numbers, from 1 on, of the connections that exist: a released one is used again.
type slots struct {
	last uint32
	free []uint32
}

func (s *slots) acquire() uint32 {
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot
	}
	s.last++
	return s.last
}

func (s *slots) release(slot uint32) { s.free = append(s.free, slot) }

// shown returns the object with numbers that are unique among all clients of the service, in place of the session's handles.
func (c *connection) shown(o proto.Object) proto.Object {
	for _, h := range []*provider.Handle{&o.Handle, &o.PD, &o.SRQ, &o.SendCQ, &o.RecvCQ} {
		*h = hca.Distinct(c.slot, *h)
	}
	return o
}

// objectKinds are the kinds of objects in the words of package hca.
var objectKinds = map[proto.ObjectKind]hca.ObjectKind{
	proto.PDs: hca.ObjectPD, proto.CQs: hca.ObjectCQ, proto.QPs: hca.ObjectQP, proto.SRQs: hca.ObjectSRQ, proto.MRs: hca.ObjectMR,
	proto.AHs: hca.ObjectAH, proto.Attachments: hca.ObjectAttachment, proto.Memberships: hca.ObjectMembership,
}

// listObjects gives a page of objects.
func (c *connection) listObjects(r proto.ListObjectsRequest) (grant proto.ObjectList, _ error) {
	kind, known := objectKinds[r.Kind]
	if !known {
		return grant, fmt.Errorf("%w: there is no kind %d of objects", verbs.ErrInvalid, r.Kind)
	}
	grant.Next, grant.More = c.page(r.From, func(other *connection, s *hca.Session, from hca.Cursor) (hca.Cursor, bool) {
		list, next, more, _ := s.Objects(kind, from, proto.PageEntries-len(grant.Objects))
		for _, o := range list {
			grant.Objects = append(grant.Objects, proto.ClientObject{
				Client: other.number, PID: uint32(other.peer.pid), UID: other.peer.uid, Object: other.shown(proto.Object(o)),
			})
		}
		return next, more
	})
	return grant, nil
}

// listIDs gives a page of connection ids.
func (c *connection) listIDs(r proto.ListIDsRequest) (grant proto.IDList, _ error) {
	grant.Next, grant.More = c.page(r.From, func(other *connection, s *hca.Session, from hca.Cursor) (hca.Cursor, bool) {
		list, next, more, _ := s.IDs(from, proto.PageIDs-len(grant.IDs))
		for _, i := range list {
			i.Handle = hca.Distinct(other.slot, i.Handle)
			grant.IDs = append(grant.IDs, proto.ClientID{Client: other.number, PID: uint32(other.peer.pid), UID: other.peer.uid, ID: proto.ID(i)})
		}
		return next, more
	})
	return grant, nil
}

// page has a list filled from the sessions that the client sees, beginning at a place, until it is full; it
// goes on at next if there is more. A session that ends meanwhile has nothing.
func (c *connection) page(at proto.ObjectPlace, fill func(*connection, *hca.Session, hca.Cursor) (hca.Cursor, bool)) (next proto.ObjectPlace, more bool) {
	from := hca.Cursor{Place: at.Place, Index: at.Index}
	for _, other := range c.seen(at.Client) {
		if other.number != at.Client {
			from = hca.Cursor{}
		}
		session, _ := other.use()
		if session == nil {
			continue
		}
		if next, more := fill(other, session, from); more {
			return proto.ObjectPlace{Client: other.number, Place: next.Place, Index: next.Index}, true
		}
	}
	return next, false
}

// counting is a Source that has counters for all its clients.
type counting interface {
	Counters() ([]verbs.Counter, error)
}

// readCounters gives a device's counters. A source without, which makes a host for each client, has
// the sums of those that the client sees.
func (c *connection) readCounters(r proto.ReadCountersRequest) (sum []verbs.Counter, _ error) {
	device, err := c.find(r.Device)
	if err != nil {
		return nil, err
	}
	card, err := c.cardOf(device)
	if err != nil {
		return nil, err
	}
	if source, counts := card.(counting); counts {
		return source.Counters()
	}
	for _, other := range c.seen(0) {
		session, of := other.use()
		if session == nil || of != device.Name() {
			continue
		}
		if list, err := session.Counters(); err == nil {
			sum = add(sum, list)
		}
	}
	return sum, nil
}

// add adds the values of a list, which has the same names in the same order.
func add(sum, list []verbs.Counter) []verbs.Counter {
	if sum == nil {
		return slices.Clone(list)
	}
	for i := range list {
		sum[i].Value += list[i].Value
	}
	return sum
}
