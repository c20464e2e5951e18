// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"net/netip"
	"time"

	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// The commands on connection ids. The reply to "create event channel" carries a descriptor: the program's end of the
// socket that is readable while there are events.
var (
	CreateEventChannel  = of(provider.CreateEventChannel, none, visitEventChannel)
	DestroyEventChannel = of(provider.DestroyEventChannel, visitDestroyEventChannel, none)
	GetCMEvent          = of(provider.GetCMEvent, visitGetCMEvent, visitCMEvent)
	CreateID            = of(provider.CreateID, visitCreateID, visitID)
	DestroyID           = of(provider.DestroyID, visitDestroyID, none)
	MigrateID           = of(provider.MigrateID, visitMigrateID, none)
	SetIDOption         = of(provider.SetIDOption, visitSetIDOption, none)
	QueryID             = of(provider.QueryID, visitQueryID, visitIDGrant)
	BindID              = of(provider.BindID, visitBindID, visitBound)
	FindRoute           = of(provider.FindRoute, visitFindRoute, visitRoute)
	ResolveIDAddr       = of(provider.ResolveIDAddr, visitResolveAddr, none)
	ResolveIDRoute      = of(provider.ResolveIDRoute, visitResolveRoute, none)
	InitIDQPAttr        = of(provider.InitIDQPAttr, visitInitQPAttr, visitInitialQPAttr)
	ListenID            = of(provider.ListenID, visitListen, none)
	ConnectID           = of(provider.ConnectID, visitConnect, none)
	AcceptID            = of(provider.AcceptID, visitAccept, none)
	RejectID            = of(provider.RejectID, visitReject, none)
	DisconnectID        = of(provider.DisconnectID, visitDisconnect, none)
	NotifyID            = of(provider.NotifyID, visitNotify, none)
	JoinID              = of(provider.JoinID, visitJoinID, none)
	LeaveID             = of(provider.LeaveID, visitLeaveID, visitLeft)
	SetIDPath           = of(provider.SetIDPath, visitSetIDPath, none)
)

func visitEventChannel(c *coder, g *provider.CreateEventChannelGrant) {
	visitHandle(c, "channel", &g.Channel)
}

func visitDestroyEventChannel(c *coder, r *provider.DestroyEventChannelRequest) {
	visitHandle(c, "channel", &r.Channel)
}

func visitGetCMEvent(c *coder, r *provider.GetCMEventRequest) { visitHandle(c, "channel", &r.Channel) }

func visitCMEvent(c *coder, g *provider.GetCMEventGrant) {
	e := &g.Event
	c.flag("found", &g.Found)
	c.flag("drained", &g.Drained)
	u8(c, "type", &e.Type)
	c.reserved(1)
	i32(c, "status", &e.Status)
	u32(c, "id", &e.ID)
	u32(c, "listener", &e.Listener)
	u64(c, "context", &e.Context)
	visitAHAttr(c, "ah", &e.AH)
	visitConnParam(c, &e.ConnParam)
}

// visitPrivateData comes last in a structure.
func visitPrivateData(c *coder, data *[]byte) {
	list(c, "private_data", ib.MaxCMPrivateData, data, func(c *coder, b *byte) { u8(c, "byte", b) })
}

func visitCreateID(c *coder, r *provider.CreateIDRequest) {
	u32(c, "channel", &r.Channel)
	u16(c, "port_space", &r.PortSpace)
	u8(c, "qp_type", &r.QPType)
	c.reserved(1)
}

func visitID(c *coder, g *provider.CreateIDGrant)           { visitHandle(c, "id", &g.ID) }
func visitDestroyID(c *coder, r *provider.DestroyIDRequest) { visitHandle(c, "id", &r.ID) }
func visitQueryID(c *coder, r *provider.QueryIDRequest)     { visitHandle(c, "id", &r.ID) }

func visitMigrateID(c *coder, r *provider.MigrateIDRequest) {
	u32(c, "id", &r.ID)
	u32(c, "channel", &r.Channel)
}

func visitSetIDOption(c *coder, r *provider.SetIDOptionRequest) {
	u32(c, "id", &r.ID)
	u8(c, "option", &r.Option)
	c.reserved(3)
	u32(c, "value", &r.Value)
	c.reserved(4)
}

func visitIDGrant(c *coder, g *provider.QueryIDGrant) {
	u16(c, "port_space", &g.PortSpace)
	u8(c, "qp_type", &g.QPType)
	c.flag("on_device", &g.OnDevice)
	c.reserved(4)
	visitAHAttr(c, "ah", &g.AH)
	visitAddrPort(c, "local", &g.Local)
	visitAddrPort(c, "remote", &g.Remote)
}

func visitBindID(c *coder, r *provider.BindIDRequest) {
	u32(c, "id", &r.ID)
	c.flag("shared", &r.Shared)
	c.reserved(3)
	u64(c, "whose", &r.Whose)
	visitAddrPort(c, "addr", &r.Address)
}

func visitBound(c *coder, g *provider.BindIDGrant) { visitAddrPort(c, "addr", &g.Address) }

func visitFindRoute(c *coder, r *provider.FindRouteRequest) {
	visitAddr(c, "source", &r.Source)
	visitAddr(c, "dest", &r.Dest)
}

func visitRoute(c *coder, g *provider.FindRouteGrant) { visitAddr(c, "source", &g.Source) }

func visitResolveAddr(c *coder, r *provider.ResolveIDAddrRequest) {
	timeout := int(r.Timeout)
	visitHandle(c, "id", &r.ID)
	c.whole("timeout_ns", &timeout)
	visitAddrPort(c, "source", &r.Source)
	visitAddrPort(c, "dest", &r.Dest)
	r.Timeout = time.Duration(timeout)
}

func visitResolveRoute(c *coder, r *provider.ResolveIDRouteRequest) { visitHandle(c, "id", &r.ID) }

func visitSetIDPath(c *coder, r *provider.SetIDPathRequest) {
	visitHandle(c, "id", &r.ID)
	visitAHAttr(c, "path", &r.Path)
}

func visitInitQPAttr(c *coder, r *provider.InitIDQPAttrRequest) {
	u32(c, "id", &r.ID)
	u8(c, "state", &r.State)
	c.reserved(3)
}

func visitInitialQPAttr(c *coder, g *provider.InitIDQPAttrGrant) {
	u32(c, "mask", &g.Mask)
	c.reserved(4)
	visitQPAttr(c, "attr", &g.Attr)
}

func visitListen(c *coder, r *provider.ListenIDRequest) {
	visitHandle(c, "id", &r.ID)
	c.whole("backlog", &r.Backlog)
}

// visitConnParam comes last in a structure: the private data follows the other parameters.
func visitConnParam(c *coder, p *ib.ConnParam) {
	part(c, "param", "conn_param", p, func(c *coder, p *ib.ConnParam) {
		u32(c, "qpn", &p.QPN)
		u32(c, "qkey", &p.QKey)
		u8(c, "responder_resources", &p.ResponderResources)
		u8(c, "initiator_depth", &p.InitiatorDepth)
		c.flag("flow_control", &p.FlowControl)
		u8(c, "retry_count", &p.RetryCount)
		u8(c, "rnr_retry_count", &p.RNRRetryCount)
		c.flag("srq", &p.SRQ)
		c.reserved(2)
	})
	visitPrivateData(c, &p.PrivateData)
}

func visitConnect(c *coder, r *provider.ConnectIDRequest) {
	visitHandle(c, "id", &r.ID)
	visitConnParam(c, &r.Param)
}

func visitAccept(c *coder, r *provider.AcceptIDRequest) {
	u32(c, "id", &r.ID)
	c.flag("response", &r.Response)
	c.reserved(3)
	visitConnParam(c, &r.Param)
}

func visitReject(c *coder, r *provider.RejectIDRequest) {
	visitHandle(c, "id", &r.ID)
	visitPrivateData(c, &r.PrivateData)
}

func visitDisconnect(c *coder, r *provider.DisconnectIDRequest) { visitHandle(c, "id", &r.ID) }

func visitNotify(c *coder, r *provider.NotifyIDRequest) {
	u32(c, "id", &r.ID)
	u8(c, "event", &r.Event)
	c.reserved(3)
}

func visitJoinID(c *coder, r *provider.JoinIDRequest) {
	u32(c, "id", &r.ID)
	visitJoinKind(c, &r.State)
	u64(c, "context", &r.Context)
	visitAddr(c, "group", &r.Group)
}

func visitLeaveID(c *coder, r *provider.LeaveIDRequest) {
	visitHandle(c, "id", &r.ID)
	visitAddr(c, "group", &r.Group)
}

func visitLeft(c *coder, g *provider.LeaveIDGrant) { u64(c, "context", &g.Context) }

// visitAddr visits an address without a port: in C it has one, which is 0.
func visitAddr(c *coder, name string, a *netip.Addr) {
	both := netip.AddrPortFrom(*a, 0)
	visitAddrPort(c, name, &both)
	*a = both.Addr()
	if c.direction == decoding && both.Port() != 0 {
		c.fail("an address with a port")
	}
}

// visitAddrPort visits an address with a port; a zero one has neither.
func visitAddrPort(c *coder, name string, a *netip.AddrPort) {
	family, raw, zone := addressParts(a.Addr())
	port := a.Port()
	part(c, name, "addr_port", a, func(c *coder, a *netip.AddrPort) {
		u8(c, "family", &family)
		c.reserved(1)
		u16(c, "port", &port)
		c.raw("addr", raw[:])
		c.text("zone", nameLen, &zone)
		c.reserved(4)
	})
	if c.direction == decoding && c.err == nil {
		*a = netip.AddrPortFrom(parseAddress(c, family, raw, zone), port)
	}
}
