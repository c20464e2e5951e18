// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/provider"
)

// The commands on completion queues and completion channels.
var (
	CreateCQ  = of(provider.CreateCQ, visitCreateCQ, visitCQ)
	DestroyCQ = of(provider.DestroyCQ, visitDestroyCQ, none)
	ResizeCQ  = of(provider.ResizeCQ, visitResizeCQ, visitResizedCQ)
	ModifyCQ  = of(provider.ModifyCQ, visitModifyCQ, none)
	CheckCQ   = of(provider.CheckCQ, visitCheckCQ, none)

	// CreateCompChannel has a reply with a descriptor: the program's end of the channel.
	CreateCompChannel  = of(provider.CreateCompChannel, none, visitCompChannel)
	DestroyCompChannel = of(provider.DestroyCompChannel, visitDestroyCompChannel, none)
)

// visitQueue visits the memory of a queue and its geometry.
func visitQueue(c *coder, name string, memory *[]byte, g *ring.Geometry) {
	c.shared(name+"_memory", memory)
	part(c, name, "geometry", g, func(c *coder, g *ring.Geometry) {
		u32(c, "entries", &g.Entries)
		u32(c, "stride", &g.Stride)
	})
}

func visitCreateCQ(c *coder, r *provider.CreateCQRequest) {
	c.whole("entries", &r.Entries)
	u64(c, "event_id", &r.EventID)
	u32(c, "channel", &r.Channel)
	u32(c, "flags", &r.Flags)
	c.whole("comp_vector", &r.CompVector)
	u64(c, "wc_flags", &r.WCFlags)
}

func visitCQ(c *coder, g *provider.CreateCQGrant) {
	visitHandle(c, "cq", &g.CQ)
	visitQueue(c, "queue", &g.Memory, &g.Geometry)
}

func visitDestroyCQ(c *coder, r *provider.DestroyCQRequest) { visitHandle(c, "cq", &r.CQ) }

func visitResizeCQ(c *coder, r *provider.ResizeCQRequest) {
	visitHandle(c, "cq", &r.CQ)
	c.whole("entries", &r.Entries)
}

func visitResizedCQ(c *coder, g *provider.ResizeCQGrant) {
	visitQueue(c, "queue", &g.Memory, &g.Geometry)
}

func visitModifyCQ(c *coder, r *provider.ModifyCQRequest) {
	u32(c, "cq", &r.CQ)
	u16(c, "count", &r.Count)
	u16(c, "period", &r.Period)
}

func visitCheckCQ(c *coder, r *provider.CheckCQRequest) {
	u32(c, "cq", &r.CQ)
	u32(c, "armings", &r.Armings)
}

func visitCompChannel(c *coder, g *provider.CreateCompChannelGrant) {
	visitHandle(c, "channel", &g.Channel)
}

func visitDestroyCompChannel(c *coder, r *provider.DestroyCompChannelRequest) {
	visitHandle(c, "channel", &r.Channel)
}
