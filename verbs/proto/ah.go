// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"net/netip"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// The commands on address handles and groups.
var (
	CreateAH       = of(provider.CreateAH, visitCreateAH, visitAH)
	DestroyAH      = of(provider.DestroyAH, visitDestroyAH, none)
	ModifyAH       = of(provider.ModifyAH, visitModifyAH, none)
	QueryAH        = of(provider.QueryAH, visitQueryAH, visitAHGrant)
	AttachMcast    = of(provider.AttachMcast, visitMcast, none)
	DetachMcast    = of(provider.DetachMcast, visitMcast, none)
	JoinMulticast  = of(provider.JoinMulticast, visitJoin, visitMembership)
	LeaveMulticast = of(provider.LeaveMulticast, visitLeave, none)
)

func visitAHAttr(c *coder, name string, a *verbs.AHAttr) {
	part(c, name, "ah_attr", a, func(c *coder, a *verbs.AHAttr) {
		c.raw("dgid", a.GRH.DGID[:])
		c.whole("sgid_index", &a.GRH.SGIDIndex)
		u32(c, "flow_label", &a.GRH.FlowLabel)
		u8(c, "hop_limit", &a.GRH.HopLimit)
		u8(c, "traffic_class", &a.GRH.TrafficClass)
		u8(c, "port", &a.Port)
		u8(c, "sl", &a.SL)
	})
}

func visitCreateAH(c *coder, r *provider.CreateAHRequest) {
	u32(c, "pd", &r.PD)
	c.flag("no_wait", &r.NoWait)
	c.reserved(3)
	visitAHAttr(c, "attr", &r.Attr)
}

func visitAH(c *coder, g *provider.CreateAHGrant)           { visitHandle(c, "ah", &g.AH) }
func visitDestroyAH(c *coder, r *provider.DestroyAHRequest) { visitHandle(c, "ah", &r.AH) }

func visitModifyAH(c *coder, r *provider.ModifyAHRequest) {
	visitHandle(c, "ah", &r.AH)
	visitAHAttr(c, "attr", &r.Attr)
}

func visitQueryAH(c *coder, r *provider.QueryAHRequest) { visitHandle(c, "ah", &r.AH) }
func visitAHGrant(c *coder, g *provider.QueryAHGrant)   { visitAHAttr(c, "attr", &g.Attr) }

func visitMcast(c *coder, r *provider.McastRequest) {
	u32(c, "qp", &r.QP)
	u16(c, "mlid", &r.MLID)
	c.reserved(2)
	c.raw("mgid", r.MGID[:])
}

// The families of addresses in a join.
const (
	familyNone = 0
	familyIPv4 = 4 // in the first 4 bytes
	familyIPv6 = 6
)

func visitJoin(c *coder, r *provider.JoinMulticastRequest) {
	visitJoinKind(c, &r.State)
	visitAddress(c, &r.Group)
}

// visitJoinKind is a join state with its bits in a different order, which is compatible with older releases: 1 is a
// full member and 2 a send-only full member.
func visitJoinKind(c *coder, s *ib.JoinState) {
	kind := *s&^0xE | *s>>2&2 | *s&6<<1 // full, send-only full, non-member, send-only non-member
	u8(c, "kind", &kind)
	c.reserved(3)
	if c.direction == decoding {
		*s = kind&^0xE | kind&2<<2 | kind&0xC>>1
	}
}

func visitAddress(c *coder, a *netip.Addr) {
	family, raw, zone := addressParts(*a)
	u8(c, "family", &family)
	c.reserved(3)
	c.raw("group", raw[:])
	c.text("zone", nameLen, &zone)
	if c.direction == decoding && c.err == nil {
		*a = parseAddress(c, family, raw, zone)
	}
}

func addressParts(a netip.Addr) (family uint8, raw [16]byte, zone string) {
	family = familyNone
	switch {
	case a.Is4():
		family = familyIPv4
	case a.Is6():
		family = familyIPv6
	}
	copy(raw[:], a.AsSlice())
	return family, raw, a.Zone()
}

func parseAddress(c *coder, family uint8, raw [16]byte, zone string) netip.Addr {
	switch {
	case family == familyIPv6:
		return netip.AddrFrom16(raw).WithZone(zone)
	case family == familyIPv4 && zone == "" && [12]byte(raw[4:]) == [12]byte{}:
		return netip.AddrFrom4([4]byte(raw[:4]))
	case family == familyNone && zone == "" && raw == [16]byte{}:
		return netip.Addr{}
	}
	c.fail("an address of family %d", family)
	return netip.Addr{}
}

func visitMembership(c *coder, g *provider.JoinMulticastGrant) {
	visitHandle(c, "membership", &g.Membership)
	c.raw("mgid", g.MGID[:])
	c.raw("sgid", g.SGID[:])
}

func visitLeave(c *coder, r *provider.LeaveMulticastRequest) {
	visitHandle(c, "membership", &r.Membership)
}
