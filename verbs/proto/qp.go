// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// The commands on queue pairs.
var (
	CreateQP  = of(provider.CreateQP, visitCreateQP, visitQP)
	ModifyQP  = of(provider.ModifyQP, visitModifyQP, visitModifiedQP)
	QueryQP   = of(provider.QueryQP, visitQueryQP, visitQPGrant)
	DestroyQP = of(provider.DestroyQP, visitDestroyQP, none)
)

func visitCap(c *coder, v *verbs.QPCap) {
	part(c, "cap", "qp_cap", v, func(c *coder, v *verbs.QPCap) {
		u32(c, "max_send_wr", &v.MaxSendWR)
		u32(c, "max_recv_wr", &v.MaxRecvWR)
		u32(c, "max_send_sge", &v.MaxSendSGE)
		u32(c, "max_recv_sge", &v.MaxRecvSGE)
		u32(c, "max_inline_data", &v.MaxInlineData)
	})
}

func visitCreateQP(c *coder, r *provider.CreateQPRequest) {
	u32(c, "pd", &r.PD)
	u32(c, "send_cq", &r.SendCQ)
	u32(c, "recv_cq", &r.RecvCQ)
	visitCap(c, &r.Cap)
	u32(c, "doorbell_index", &r.DoorbellIndex)
	u32(c, "completion_token", &r.CompletionToken)
	u64(c, "event_id", &r.EventID)
	u8(c, "type", &r.Type)
	c.flag("sig_all", &r.SigAll)
	c.flag("block_self_mcast", &r.BlockSelfMcast)
	u8(c, "port", &r.Port)
	u32(c, "srq", &r.SRQ)
}

func visitQP(c *coder, g *provider.CreateQPGrant) {
	u32(c, "qp", &g.QP)
	u32(c, "qp_num", &g.Number)
	visitCap(c, &g.Cap)
	c.reserved(4)
	visitQueue(c, "send_queue", &g.SendMemory, &g.SendGeometry)
	visitQueue(c, "recv_queue", &g.RecvMemory, &g.RecvGeometry)
}

func visitQPAttr(c *coder, name string, a *verbs.QPAttr) {
	part(c, name, "qp_attr", a, visitQPAttrFields)
}

func visitQPAttrFields(c *coder, a *verbs.QPAttr) {
	u8(c, "state", &a.State)
	u8(c, "cur_state", &a.CurState)
	u16(c, "pkey_index", &a.PKeyIndex)
	u8(c, "port", &a.Port)
	c.flag("en_sqd_async_notify", &a.EnSQDAsyncNotify)
	c.reserved(2)
	u32(c, "qkey", &a.QKey)
	u32(c, "sq_psn", &a.SQPSN)
	visitCap(c, &a.Cap)
	u32(c, "dest_qp_num", &a.DestQPN)
	u32(c, "rq_psn", &a.RQPSN)
	u32(c, "qp_access_flags", &a.AccessFlags)
	u8(c, "path_mtu", &a.PathMTU)
	u8(c, "path_mig_state", &a.PathMigState)
	u8(c, "max_rd_atomic", &a.MaxRDAtomic)
	u8(c, "max_dest_rd_atomic", &a.MaxDestRDAtomic)
	u8(c, "min_rnr_timer", &a.MinRNRTimer)
	u8(c, "timeout", &a.Timeout)
	u8(c, "retry_cnt", &a.RetryCnt)
	u8(c, "rnr_retry", &a.RNRRetry)
	visitAHAttr(c, "ah", &a.AHAttr)
}

func visitModifyQP(c *coder, r *provider.ModifyQPRequest) {
	u32(c, "qp", &r.QP)
	u32(c, "mask", &r.Mask)
	visitQPAttr(c, "attr", &r.Attr)
	u32(c, "completion_token", &r.CompletionToken)
	c.reserved(4)
}

func visitQueryQP(c *coder, r *provider.QueryQPRequest) { visitHandle(c, "qp", &r.QP) }

func visitModifiedQP(c *coder, g *provider.ModifyQPGrant) { visitQPAttr(c, "attr", &g.Attr) }

func visitQPGrant(c *coder, g *provider.QueryQPGrant) {
	visitQPAttr(c, "attr", &g.Attr)
	c.flag("leaving", &g.Leaving)
	c.reserved(7)
}

func visitDestroyQP(c *coder, r *provider.DestroyQPRequest) { visitHandle(c, "qp", &r.QP) }
