// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// The commands of programs that inspect the service: they need no session. uid 0 and the service's own user see all
// objects, other users their own.
var (
	ListClients  = command(4, "list_clients", visitListClients, visitClients)
	ListObjects  = command(5, "list_objects", visitListObjects, visitObjects)
	ReadCounters = command(6, "read_counters", visitReadCounters, visitCounters)
)

// PageEntries is the maximum number of entries of a list of clients or objects.
const PageEntries = 100

// ListClientsRequest requests clients with numbers above After.
type ListClientsRequest struct{ After uint64 }

// ClientList is a page of clients, ordered by number.
type ClientList struct {
	More    bool
	Clients []ClientInfo
}

// ClientInfo describes a client and its objects.
type ClientInfo struct {
	Number     uint64 // counts connections
	PID, UID   uint32
	Owner      uint32 // the user that owns UID (subuid(5)) and is charged; else UID
	Device     string // empty until it has opened a device
	Command    string // the process's name, as ps shows it
	Since      uint64 // ns since 1970
	PDs        uint32
	MRs        uint32
	CQs        uint32
	QPs        uint32
	SRQs       uint32
	AHs        uint32
	Channels   uint32 // completion channels
	Members    uint32 // memberships of groups
	Attached   uint32 // attachments of queue pairs to groups
	MemorySize uint64 // bytes of queues and regions
}

// ObjectKind is a kind of objects.
type ObjectKind uint16

// The kinds. Attachments are of queue pairs to groups.
const (
	PDs         ObjectKind = 1
	CQs         ObjectKind = 2
	QPs         ObjectKind = 3
	SRQs        ObjectKind = 4
	MRs         ObjectKind = 5
	AHs         ObjectKind = 6
	Attachments ObjectKind = 7
	Memberships ObjectKind = 8
)

// ObjectPlace is a position in a list: a client, and a position among its objects. The zero ObjectPlace is the
// beginning.
type ObjectPlace struct {
	Client       uint64
	Place, Index uint32
}

// ListObjectsRequest requests objects of a kind.
type ListObjectsRequest struct {
	Kind ObjectKind
	From ObjectPlace
}

// ObjectList is a page of objects; the list continues at Next if there is more. Objects that are created or destroyed
// between two pages may or may not be listed. A page may be empty though there is more.
type ObjectList struct {
	More    bool
	Next    ObjectPlace
	Objects []ClientObject
}

// ClientObject is an object with its owner.
type ClientObject struct {
	Client   uint64
	PID, UID uint32
	Object
}

// Object is an object as hca.Object describes it. Fields that a kind does not have are 0.
type Object struct {
	Handle          provider.Handle
	Number          uint32
	Type            verbs.QPType
	State           verbs.QPState
	Failed          bool
	Full            bool
	PD, SRQ         provider.Handle
	SendCQ, RecvCQ  provider.Handle
	Users           uint32
	Size, Used      uint32
	RecvSize        uint32
	RecvUsed        uint32
	Limit           uint32
	QKey            verbs.QKey
	PSN             verbs.PSN
	PeerQPN         verbs.QPN
	MLID            verbs.MLID
	Access          verbs.AccessFlags
	Address, Length uint64
	Source, Dest    verbs.GID
}

// ReadCountersRequest requests a device's counters; those of a device that makes a host for each client are the sums of
// all hosts', including those that have ended.
type ReadCountersRequest struct{ Device string }

func visitListClients(c *coder, r *ListClientsRequest) { u64(c, "after", &r.After) }

func visitMore(c *coder, more *bool) {
	c.flag("more", more)
	c.reserved(7)
}

func visitClients(c *coder, g *ClientList) {
	visitMore(c, &g.More)
	list(c, "clients", PageEntries, &g.Clients, visitClient)
}

func visitClient(c *coder, i *ClientInfo) {
	u64(c, "number", &i.Number)
	u32(c, "pid", &i.PID)
	u32(c, "uid", &i.UID)
	c.text("device", nameLen, &i.Device)
	c.clipped("command", 16, &i.Command)
	u64(c, "since", &i.Since)
	u32(c, "pds", &i.PDs)
	u32(c, "mrs", &i.MRs)
	u32(c, "cqs", &i.CQs)
	u32(c, "qps", &i.QPs)
	u32(c, "srqs", &i.SRQs)
	u32(c, "ahs", &i.AHs)
	u32(c, "comp_channels", &i.Channels)
	u32(c, "memberships", &i.Members)
	u32(c, "attachments", &i.Attached)
	u32(c, "owner", &i.Owner)
	u64(c, "memory_size", &i.MemorySize)
}

func visitObjectPlace(c *coder, p *ObjectPlace) {
	u64(c, "client", &p.Client)
	u32(c, "place", &p.Place)
	u32(c, "index", &p.Index)
}

func visitListObjects(c *coder, r *ListObjectsRequest) {
	u16(c, "kind", &r.Kind)
	c.reserved(6)
	part(c, "from", "object_place", &r.From, visitObjectPlace)
}

func visitObjects(c *coder, g *ObjectList) {
	visitMore(c, &g.More)
	part(c, "next", "object_place", &g.Next, visitObjectPlace)
	list(c, "objects", PageEntries, &g.Objects, visitClientObject)
}

func visitClientObject(c *coder, o *ClientObject) {
	u64(c, "client", &o.Client)
	u32(c, "pid", &o.PID)
	u32(c, "uid", &o.UID)
	part(c, "object", "object", &o.Object, visitObject)
}

func visitObject(c *coder, o *Object) {
	u32(c, "handle", &o.Handle)
	u32(c, "number", &o.Number)
	u8(c, "type", &o.Type)
	u8(c, "state", &o.State)
	c.flag("failed", &o.Failed)
	c.flag("full", &o.Full)
	u32(c, "users", &o.Users)
	u32(c, "pd", &o.PD)
	u32(c, "srq", &o.SRQ)
	u32(c, "send_cq", &o.SendCQ)
	u32(c, "recv_cq", &o.RecvCQ)
	u32(c, "size", &o.Size)
	u32(c, "used", &o.Used)
	u32(c, "recv_size", &o.RecvSize)
	u32(c, "recv_used", &o.RecvUsed)
	u32(c, "limit", &o.Limit)
	u32(c, "qkey", &o.QKey)
	u32(c, "psn", &o.PSN)
	u16(c, "mlid", &o.MLID)
	c.reserved(2)
	u32(c, "access", &o.Access)
	u32(c, "peer_qpn", &o.PeerQPN)
	u64(c, "address", &o.Address)
	u64(c, "length", &o.Length)
	c.raw("source", o.Source[:])
	c.raw("dest", o.Dest[:])
}

func visitReadCounters(c *coder, r *ReadCountersRequest) { c.text("device", nameLen, &r.Device) }
