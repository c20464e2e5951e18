// SPDX-License-Identifier: Apache-2.0

package proto

import "github.com/roced/roced/verbs/provider"

// The commands on XRC domains. The inode of a file identifies a domain. The client passes the file itself: the reply to
// PassFile has a socket, to which it sends one byte with the file's descriptor. Then it requests OpenXRCD, with
// has_file. The connection's own socket accepts no descriptors.
var (
	PassFile        = command(76, "pass_file", none, none)
	OpenXRCD        = command(provider.OpenXRCD.Number, provider.OpenXRCD.Name, visitOpenXRCD, visitXRCD)
	CloseXRCD       = of(provider.CloseXRCD, visitCloseXRCD, none)
	CreateXRCSRQ    = of(provider.CreateXRCSRQ, visitCreateXRCSRQ, visitXRCSRQ)
	CreateXRCTarget = of(provider.CreateXRCTarget, visitCreateXRCTarget, visitOpenedQP)
	OpenQP          = of(provider.OpenQP, visitOpenQP, visitOpenedQP)
)

// OpenXRCDRequest is the request of provider.OpenXRCD over the service: the file has been passed before.
type OpenXRCDRequest struct{ HasFile, Create, Exclusive bool }

func visitOpenXRCD(c *coder, r *OpenXRCDRequest) {
	c.flag("has_file", &r.HasFile)
	c.flag("create", &r.Create)
	c.flag("exclusive", &r.Exclusive)
	c.reserved(5)
}

func visitXRCD(c *coder, g *provider.OpenXRCDGrant)         { visitHandle(c, "xrcd", &g.XRCD) }
func visitCloseXRCD(c *coder, r *provider.CloseXRCDRequest) { visitHandle(c, "xrcd", &r.XRCD) }

func visitCreateXRCSRQ(c *coder, r *provider.CreateXRCSRQRequest) {
	u32(c, "pd", &r.PD)
	u32(c, "xrcd", &r.XRCD)
	u32(c, "cq", &r.CQ)
	u32(c, "completion_token", &r.CompletionToken)
	u32(c, "max_wr", &r.Attr.MaxWR)
	u32(c, "max_sge", &r.Attr.MaxSGE)
	u64(c, "event_id", &r.EventID)
}

func visitXRCSRQ(c *coder, g *provider.CreateXRCSRQGrant) {
	part(c, "basic", "create_srq_grant", &g.CreateSRQGrant, visitSRQ)
	u32(c, "srq_num", &g.Number)
	c.reserved(4)
}

func visitCreateXRCTarget(c *coder, r *provider.CreateXRCTargetRequest) {
	visitHandle(c, "xrcd", &r.XRCD)
	u64(c, "event_id", &r.EventID)
}

func visitOpenQP(c *coder, r *provider.OpenQPRequest) {
	u32(c, "xrcd", &r.XRCD)
	u32(c, "qp_num", &r.Number)
	u64(c, "event_id", &r.EventID)
}

func visitOpenedQP(c *coder, g *provider.OpenQPGrant) {
	u32(c, "qp", &g.QP)
	u32(c, "qp_num", &g.Number)
	u8(c, "state", &g.State)
	c.reserved(7)
}
