// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// xrcCommands returns the commands of XRC domains. Each command has one invalid handle.
func xrcCommands(p provider.Provider, good, bad handles) []command {
	srq := func(pd, domain, cq provider.Handle) error {
		_, err := provider.Do(p, provider.CreateXRCSRQ, provider.CreateXRCSRQRequest{PD: pd, XRCD: domain, CQ: cq, Attr: provider.SRQInitAttr{MaxWR: 1}, EventID: 1 << 42})
		return err
	}
	return []command{
		{"CloseXRCD", func() error { return provider.Exec(p, provider.CloseXRCD, provider.CloseXRCDRequest{XRCD: bad.xrcd}) }},
		{"CreateXRCSRQ, PD", func() error { return srq(bad.PD, good.xrcd, good.CQ) }},
		{"CreateXRCSRQ, domain", func() error { return srq(good.PD, bad.xrcd, good.CQ) }},
		{"CreateXRCSRQ, CQ", func() error { return srq(good.PD, good.xrcd, bad.CQ) }},
		{"CreateXRCTarget", func() error {
			_, err := provider.Do(p, provider.CreateXRCTarget, provider.CreateXRCTargetRequest{XRCD: bad.xrcd, EventID: 1 << 43})
			return err
		}},
		{"OpenQP, domain", func() error {
			_, err := provider.Do(p, provider.OpenQP, provider.OpenQPRequest{XRCD: bad.xrcd, Number: 2, EventID: 1 << 43})
			return err
		}},
		{"ModifyQP of a target", func() error {
			_, err := provider.Do(p, provider.ModifyQP, provider.ModifyQPRequest{QP: bad.target, Attr: verbs.QPAttr{State: verbs.QPStateErr}, Mask: verbs.QPAttrState})
			return err
		}},
		{"QueryQP of a target", func() error {
			_, err := provider.Do(p, provider.QueryQP, provider.QueryQPRequest{QP: bad.target})
			return err
		}},
		{"DestroyQP of a target", func() error { return provider.Exec(p, provider.DestroyQP, provider.DestroyQPRequest{QP: bad.target}) }},
		{"AttachMcast of a target", func() error {
			return provider.Exec(p, provider.AttachMcast, provider.McastRequest{QP: good.target, MGID: rig.GID(rig.GroupV4)})
		}},
	}
}
