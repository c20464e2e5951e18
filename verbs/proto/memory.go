// SPDX-License-Identifier: Apache-2.0

package proto

import "github.com/roced/roced/verbs/provider"

// The commands on protection domains and memory.
var (
	AllocPD   = of(provider.AllocPD, none, visitPD)
	DeallocPD = of(provider.DeallocPD, visitDeallocPD, none)
	AllocMR   = of(provider.AllocMR, visitAllocMR, visitMR)
	DeregMR   = of(provider.DeregMR, visitDeregMR, none)
	ReregMR   = of(provider.ReregMR, visitReregMR, none)
	AllocMW   = of(provider.AllocMW, visitAllocMW, visitMW)
	DeallocMW = of(provider.DeallocMW, visitDeallocMW, none)

	AllocNullMR = of(provider.AllocNullMR, visitAllocNullMR, visitLeanMR)

	AllocFastMR   = of(provider.AllocFastMR, visitAllocFastMR, visitMR)
	AllocCoherent = of(provider.AllocCoherent, visitAllocCoherent, visitMR)
	MapFMR        = of(provider.MapFMR, visitMapFMR, none)
	UnmapFMR      = of(provider.UnmapFMR, visitUnmapFMR, none)
	CheckMRStatus = of(provider.CheckMRStatus, visitCheckMRStatus, visitMRStatus)

	// Those of device memory.
	AllocDM = of(provider.AllocDM, visitAllocDM, visitDM)
	FreeDM  = of(provider.FreeDM, visitFreeDM, none)
	RegDMMR = of(provider.RegDMMR, visitRegDMMR, visitLeanMR)
)

// visitHandle visits a handle that is the only field of a structure.
func visitHandle(c *coder, name string, h *provider.Handle) {
	u32(c, name, h)
	c.reserved(4)
}

func visitPD(c *coder, g *provider.AllocPDGrant)            { visitHandle(c, "pd", &g.PD) }
func visitDeallocPD(c *coder, r *provider.DeallocPDRequest) { visitHandle(c, "pd", &r.PD) }

func visitAllocMR(c *coder, r *provider.AllocMRRequest) {
	u32(c, "pd", &r.PD)
	u32(c, "access", &r.Access)
	c.whole("length", &r.Length)
	u64(c, "iova", &r.IOVA)
}

// visitReregMR visits all except memory of the program, which the service cannot access.
func visitReregMR(c *coder, r *provider.ReregMRRequest) {
	u32(c, "mr", &r.MR)
	u32(c, "flags", &r.Flags)
	u32(c, "pd", &r.PD)
	u32(c, "access", &r.Access)
	u64(c, "iova", &r.IOVA)
}

func visitMR(c *coder, g *provider.MRGrant) {
	u32(c, "mr", &g.MR)
	u32(c, "lkey", &g.LKey)
	c.shared("memory", &g.Memory)
}

func visitDeregMR(c *coder, r *provider.DeregMRRequest) { visitHandle(c, "mr", &r.MR) }

func visitAllocMW(c *coder, r *provider.AllocMWRequest) {
	u32(c, "pd", &r.PD)
	u8(c, "type", &r.Type)
	c.reserved(3)
}

func visitMW(c *coder, g *provider.AllocMWGrant) {
	u32(c, "mw", &g.MW)
	u32(c, "rkey", &g.RKey)
}

func visitDeallocMW(c *coder, r *provider.DeallocMWRequest) { visitHandle(c, "mw", &r.MW) }

func visitAllocNullMR(c *coder, r *provider.AllocNullMRRequest) { visitHandle(c, "pd", &r.PD) }

func visitAllocFastMR(c *coder, r *provider.AllocFastMRRequest) {
	u32(c, "pd", &r.PD)
	u8(c, "type", &r.Type)
	c.reserved(3)
	c.whole("entries", &r.Entries)
}

func visitAllocCoherent(c *coder, r *provider.AllocCoherentRequest) { c.whole("length", &r.Length) }

func visitMapFMR(c *coder, r *provider.MapFMRRequest) {
	u32(c, "mr", &r.MR)
	u32(c, "key", &r.Key)
	u64(c, "length", &r.Reg.Length)
	u32(c, "access", &r.Reg.Access)
	u32(c, "entries", &r.Reg.Count)
	u64(c, "iova", &r.IOVA)
}

func visitUnmapFMR(c *coder, r *provider.UnmapFMRRequest) { visitHandle(c, "mr", &r.MR) }

func visitCheckMRStatus(c *coder, r *provider.CheckMRStatusRequest) { visitHandle(c, "mr", &r.MR) }

func visitMRStatus(c *coder, g *provider.CheckMRStatusGrant) {
	c.flag("failed", &g.Failed)
	u8(c, "err_type", &g.Err.Type)
	c.reserved(2)
	u32(c, "expected", &g.Err.Expected)
	u32(c, "actual", &g.Err.Actual)
	u32(c, "key", &g.Err.Key)
	u64(c, "sig_err_offset", &g.Err.Offset)
}

func visitAllocDM(c *coder, r *provider.AllocDMRequest) { c.whole("length", &r.Length) }

func visitDM(c *coder, g *provider.AllocDMGrant) {
	visitHandle(c, "dm", &g.DM)
	c.shared("memory", &g.Memory)
}

func visitFreeDM(c *coder, r *provider.FreeDMRequest) { visitHandle(c, "dm", &r.DM) }

func visitRegDMMR(c *coder, r *provider.RegDMMRRequest) {
	u32(c, "pd", &r.PD)
	u32(c, "dm", &r.DM)
	c.whole("offset", &r.Offset)
	c.whole("length", &r.Length)
	u32(c, "access", &r.Access)
	c.reserved(4)
}

// visitLeanMR visits all except the memory, which only the client has, if any.
func visitLeanMR(c *coder, g *provider.MRGrant) {
	u32(c, "mr", &g.MR)
	u32(c, "lkey", &g.LKey)
}
