// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// The commands on shared receive queues.
var (
	CreateSRQ  = of(provider.CreateSRQ, visitCreateSRQ, visitSRQ)
	ModifySRQ  = of(provider.ModifySRQ, visitModifySRQ, visitModifiedSRQ)
	QuerySRQ   = of(provider.QuerySRQ, visitQuerySRQ, visitSRQGrant)
	DestroySRQ = of(provider.DestroySRQ, visitDestroySRQ, none)
)

func visitSRQAttr(c *coder, a *verbs.SRQAttr) {
	part(c, "attr", "srq_attr", a, func(c *coder, a *verbs.SRQAttr) {
		u32(c, "max_wr", &a.MaxWR)
		u32(c, "max_sge", &a.MaxSGE)
		u32(c, "limit", &a.Limit)
	})
}

func visitCreateSRQ(c *coder, r *provider.CreateSRQRequest) {
	visitHandle(c, "pd", &r.PD)
	u32(c, "max_wr", &r.Attr.MaxWR)
	u32(c, "max_sge", &r.Attr.MaxSGE)
	u64(c, "event_id", &r.EventID)
}

func visitSRQ(c *coder, g *provider.CreateSRQGrant) {
	u32(c, "srq", &g.SRQ)
	visitSRQAttr(c, &g.Attr)
	visitQueue(c, "queue", &g.Memory, &g.Geometry)
}

func visitModifySRQ(c *coder, r *provider.ModifySRQRequest) {
	u32(c, "srq", &r.SRQ)
	visitSRQAttr(c, &r.Attr)
	u32(c, "mask", &r.Mask)
	c.reserved(4)
}

func visitModifiedSRQ(c *coder, g *provider.ModifySRQGrant) {
	visitSRQAttr(c, &g.Attr)
	c.reserved(4)
	visitQueue(c, "queue", &g.Memory, &g.Geometry)
}

func visitQuerySRQ(c *coder, r *provider.QuerySRQRequest) { visitHandle(c, "srq", &r.SRQ) }

func visitSRQGrant(c *coder, g *provider.QuerySRQGrant) {
	visitSRQAttr(c, &g.Attr)
	c.reserved(4)
}

func visitDestroySRQ(c *coder, r *provider.DestroySRQRequest) { visitHandle(c, "srq", &r.SRQ) }
