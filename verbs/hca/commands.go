// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"context"
	"fmt"
	"slices"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/provider"
)

// commands maps each command to the function that carries it out, by the part of the session that implements it.
var commands = provider.TableOf(slices.Concat(
	provider.Of(func(s *Session) *owner { return &s.owner },
		provider.Gives(provider.QueryDevice, queryDevice),
		provider.Grants(provider.QueryPort, queryPort),
		provider.Grants(provider.QueryGIDTable, queryGIDTable),
		provider.Grants(provider.QueryPKey, queryPKey),
		provider.Gives(provider.QueryRTValues, queryRTValues),
	),
	provider.Of(func(s *Session) *pds { return &s.pds },
		provider.Gives(provider.AllocPD, (*pds).allocate),
		provider.Does(provider.DeallocPD, (*pds).deallocate),
	),
	provider.Of(func(s *Session) *mrs { return &s.mrs },
		provider.Grants(provider.AllocMR, (*mrs).allocate),
		provider.Grants(provider.RegMR, (*mrs).reg),
		provider.Does(provider.ReregMR, (*mrs).rereg),
		provider.Does(provider.DeregMR, (*mrs).dereg),
		provider.Grants(provider.AllocNullMR, (*mrs).allocNull),
		provider.Grants(provider.AllocFastMR, (*mrs).allocFast),
		provider.Does(provider.MapFMR, (*mrs).mapFMR),
		provider.Does(provider.UnmapFMR, (*mrs).unmapFMR),
		provider.Grants(provider.CheckMRStatus, (*mrs).checkStatus),
		provider.Grants(provider.AllocCoherent, (*mrs).allocCoherent),
		provider.Grants(provider.RegDMMR, (*mrs).regDM),
		provider.Grants(provider.AllocMW, (*mrs).allocMW),
		provider.Does(provider.DeallocMW, (*mrs).deallocMW),
	),
	provider.Of(func(s *Session) *dms { return &s.dms },
		provider.Grants(provider.AllocDM, (*dms).allocate),
		provider.Does(provider.FreeDM, (*dms).free),
	),
	provider.Of(func(s *Session) *channels { return &s.channels },
		provider.Gives(provider.CreateCompChannel, (*channels).create),
		provider.Does(provider.DestroyCompChannel, (*channels).destroy),
	),
	provider.Of(func(s *Session) *cqs { return &s.cqs },
		provider.Grants(provider.CreateCQ, (*cqs).create),
		provider.Grants(provider.ResizeCQ, (*cqs).resize),
		provider.Does(provider.ModifyCQ, (*cqs).modify),
		provider.Does(provider.CheckCQ, (*cqs).check),
		provider.Does(provider.DestroyCQ, (*cqs).destroy),
	),
	provider.Of(func(s *Session) *srqs { return &s.srqs },
		provider.Grants(provider.CreateSRQ, (*srqs).create),
		provider.Grants(provider.CreateXRCSRQ, (*srqs).createXRC),
		provider.Grants(provider.ModifySRQ, (*srqs).modify),
		provider.Grants(provider.QuerySRQ, (*srqs).query),
		provider.Does(provider.DestroySRQ, (*srqs).destroy),
	),
	provider.Of(func(s *Session) *qps { return &s.qps },
		provider.Grants(provider.CreateQP, (*qps).create),
		provider.Grants(provider.ModifyQP, (*qps).modify),
		provider.Grants(provider.QueryQP, (*qps).query),
		provider.Does(provider.DestroyQP, (*qps).destroy),
	),
	provider.Of(func(s *Session) *targets { return &s.targets },
		provider.Grants(provider.CreateXRCTarget, (*targets).create),
		provider.Grants(provider.OpenQP, (*targets).open),
	),
	provider.Of(func(s *Session) *attachments { return &s.attachments },
		provider.Does(provider.AttachMcast, (*attachments).attach),
		provider.Does(provider.DetachMcast, (*attachments).detach),
	),
	provider.Of(func(s *Session) *counterSets { return &s.counters },
		provider.Gives(provider.CreateCounters, (*counterSets).create),
		provider.Does(provider.AttachCounters, (*counterSets).attach),
		provider.Grants(provider.ReadCounters, (*counterSets).read),
		provider.Does(provider.DestroyCounters, (*counterSets).destroy),
	),
	provider.Of(func(s *Session) *xrcds { return &s.xrcds },
		provider.Grants(provider.OpenXRCD, (*xrcds).open),
		provider.Does(provider.CloseXRCD, (*xrcds).close),
	),
	provider.Of(func(s *Session) *ahs { return &s.ahs },
		provider.Waits(provider.CreateAH, (*ahs).create),
		provider.Waits(provider.ModifyAH, (*ahs).modify),
		provider.Grants(provider.QueryAH, (*ahs).query),
		provider.Does(provider.DestroyAH, (*ahs).destroy),
	),
	provider.Of(func(s *Session) *memberships { return &s.memberships },
		provider.Grants(provider.JoinMulticast, (*memberships).join),
		provider.Does(provider.LeaveMulticast, (*memberships).Leave),
	),
	provider.Of(func(s *Session) *ids.Session { return s.ids }, ids.Commands...),
)...)

// Do implements provider.Provider.
func (s *Session) Do(ctx context.Context, code provider.Code, request, grant any) error {
	if run, found := commands[code.Number]; found {
		return run(ctx, s, request, grant)
	}
	return fmt.Errorf("%w: command %d (%s)", verbs.ErrUnsupported, code.Number, code.Name)
}
