// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// ListIDs is a command of programs that inspect the service, like ListObjects.
var ListIDs = command(10, "list_ids", visitListIDs, visitIDs)

// PageIDs is the maximum number of entries of a list of ids, which must fit into a message.
const PageIDs = 64

// ListIDsRequest requests connection ids.
type ListIDsRequest struct{ From ObjectPlace }

// IDList is a page of ids; the list continues at Next if there is more.
type IDList struct {
	More bool
	Next ObjectPlace
	IDs  []ClientID
}

// ClientID is a connection id with its owner.
type ClientID struct {
	Client   uint64
	PID, UID uint32
	ID
}

// ID is a connection id as hca.IDInfo describes it.
type ID struct {
	Handle        provider.Handle
	PortSpace     wire.PortSpace
	Type          verbs.QPType
	State         string // as rdma(8) names it
	Local, Remote netip.AddrPort
	Events        uint32
	Groups        uint32
}

func visitListIDs(c *coder, r *ListIDsRequest) {
	part(c, "from", "object_place", &r.From, visitObjectPlace)
}

func visitIDs(c *coder, g *IDList) {
	visitMore(c, &g.More)
	part(c, "next", "object_place", &g.Next, visitObjectPlace)
	list(c, "ids", PageIDs, &g.IDs, visitClientID)
}

func visitClientID(c *coder, i *ClientID) {
	u64(c, "client", &i.Client)
	u32(c, "pid", &i.PID)
	u32(c, "uid", &i.UID)
	u32(c, "handle", &i.Handle)
	u16(c, "port_space", &i.PortSpace)
	u8(c, "type", &i.Type)
	c.reserved(1)
	u32(c, "events", &i.Events)
	u32(c, "groups", &i.Groups)
	c.text("state", 16, &i.State)
	visitAddrPort(c, "local", &i.Local)
	visitAddrPort(c, "remote", &i.Remote)
}
