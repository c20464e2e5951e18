// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/proto"
)

// ListClients returns a page of clients.
func (v *View) ListClients(r proto.ListClientsRequest) (grant proto.ClientList, _ error) {
	for _, c := range v.service.seenBy(v.client, r.After+1) {
		if grant.More = len(grant.Clients) == proto.PageEntries; grant.More {
			break
		}
		grant.Clients = append(grant.Clients, c.info())
	}
	return grant, nil
}

// objectKinds maps the kinds of objects to those of package hca.
var objectKinds = map[proto.ObjectKind]hca.ObjectKind{
	proto.PDs: hca.ObjectPD, proto.CQs: hca.ObjectCQ, proto.QPs: hca.ObjectQP, proto.SRQs: hca.ObjectSRQ, proto.MRs: hca.ObjectMR,
	proto.AHs: hca.ObjectAH, proto.Attachments: hca.ObjectAttachment, proto.Memberships: hca.ObjectMembership,
}

// ListObjects returns a page of objects of a kind.
func (v *View) ListObjects(r proto.ListObjectsRequest) (grant proto.ObjectList, _ error) {
	kind, known := objectKinds[r.Kind]
	if !known {
		return grant, fmt.Errorf("%w: there is no kind %d of objects", verbs.ErrInvalid, r.Kind)
	}
	grant.Next, grant.More = v.page(r.From, func(c *Client, s *hca.Session, from hca.Cursor) (hca.Cursor, bool) {
		list, next, more, _ := s.Objects(kind, from, proto.PageEntries-len(grant.Objects))
		for _, o := range list {
			grant.Objects = append(grant.Objects, proto.ClientObject{
				Client: c.number, PID: uint32(c.peer.PID), UID: c.peer.UID, Object: c.distinct(proto.Object(o)),
			})
		}
		return next, more
	})
	return grant, nil
}

// ListIDs returns a page of connection ids.
func (v *View) ListIDs(r proto.ListIDsRequest) (grant proto.IDList, _ error) {
	grant.Next, grant.More = v.page(r.From, func(c *Client, s *hca.Session, from hca.Cursor) (hca.Cursor, bool) {
		list, next, more, _ := s.IDs(from, proto.PageIDs-len(grant.IDs))
		for _, i := range list {
			i.Handle = handles.Distinct(c.slot, i.Handle)
			grant.IDs = append(grant.IDs, proto.ClientID{Client: c.number, PID: uint32(c.peer.PID), UID: c.peer.UID, ID: proto.ID(i)})
		}
		return next, more
	})
	return grant, nil
}

// page calls fill for the sessions that the client sees, beginning at a place, until the list is full. The list continues at
// next if there is more. A session that ends meanwhile has no objects.
func (v *View) page(at proto.ObjectPlace, fill func(*Client, *hca.Session, hca.Cursor) (hca.Cursor, bool)) (next proto.ObjectPlace, more bool) {
	from := hca.Cursor{Place: at.Place, Index: at.Index}
	for _, c := range v.service.seenBy(v.client, at.Client) {
		if c.number != at.Client {
			from = hca.Cursor{}
		}
		session, _ := c.open()
		if session == nil {
			continue
		}
		if next, more := fill(c, session, from); more {
			return proto.ObjectPlace{Client: c.number, Place: next.Place, Index: next.Index}, true
		}
	}
	return next, false
}
