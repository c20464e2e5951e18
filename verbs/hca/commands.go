//go:build linux

package hca

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/provider"
)

// commands are the functions that carry out commands. Those about connection ids are in package ids.
var commands = provider.TableOf(
	provider.Gives(provider.QueryDevice, queryDevice),
	provider.Grants(provider.QueryPort, queryPort),
	provider.Grants(provider.QueryGIDTable, queryGIDTable),
	provider.Grants(provider.QueryPKey, queryPKey),
	provider.Gives(provider.QueryRTValues, queryRTValues),
	provider.Gives(provider.AllocPD, allocPD),
	provider.Does(provider.DeallocPD, deallocPD),
	provider.Grants(provider.AllocMR, allocMR),
	provider.Grants(provider.RegMR, regMR),
	provider.Does(provider.ReregMR, reregMR),
	provider.Does(provider.DeregMR, deregMR),
	provider.Grants(provider.AllocNullMR, allocNullMR),
	provider.Grants(provider.AllocFastMR, allocFastMR),
	provider.Does(provider.MapFMR, mapFMR),
	provider.Does(provider.UnmapFMR, unmapFMR),
	provider.Grants(provider.CheckMRStatus, checkMRStatus),
	provider.Grants(provider.AllocCoherent, allocCoherent),
	provider.Grants(provider.AllocDM, allocDM),
	provider.Grants(provider.RegDMMR, regDMMR),
	provider.Does(provider.FreeDM, freeDM),
	provider.Grants(provider.AllocMW, allocMW),
	provider.Does(provider.DeallocMW, deallocMW),
	provider.Gives(provider.CreateCompChannel, createCompChannel),
	provider.Does(provider.DestroyCompChannel, destroyCompChannel),
	provider.Grants(provider.CreateCQ, createCQ),
	provider.Grants(provider.ResizeCQ, resizeCQ),
	provider.Does(provider.ModifyCQ, modifyCQ),
	provider.Does(provider.CheckCQ, checkCQ),
	provider.Does(provider.DestroyCQ, destroyCQ),
	provider.Grants(provider.CreateSRQ, createSRQ),
	provider.Grants(provider.ModifySRQ, modifySRQ),
	provider.Grants(provider.QuerySRQ, querySRQ),
	provider.Does(provider.DestroySRQ, destroySRQ),
	provider.Grants(provider.CreateQP, createQP),
	provider.Grants(provider.ModifyQP, modifyQP),
	provider.Grants(provider.QueryQP, queryQP),
	provider.Does(provider.DestroyQP, destroyQP),
	provider.Gives(provider.CreateCounters, createCounters),
	provider.Does(provider.AttachCounters, attachCounters),
	provider.Grants(provider.ReadCounters, readCounters),
	provider.Does(provider.DestroyCounters, destroyCounters),
	provider.Grants(provider.OpenXRCD, openXRCD),
	provider.Does(provider.CloseXRCD, closeXRCD),
	provider.Grants(provider.CreateXRCSRQ, createXRCSRQ),
	provider.Grants(provider.CreateXRCTarget, createXRCTarget),
	provider.Grants(provider.OpenQP, openQP),
	provider.Waits(provider.CreateAH, createAH),
	provider.Waits(provider.ModifyAH, func(ctx context.Context, s *Session, r provider.ModifyAHRequest) (provider.None, error) {
		return provider.None{}, modifyAH(ctx, s, r)
	}),
	provider.Grants(provider.QueryAH, queryAH),
	provider.Does(provider.DestroyAH, destroyAH),
	provider.Does(provider.AttachMcast, attachMcast),
	provider.Does(provider.DetachMcast, detachMcast),
	provider.Grants(provider.JoinMulticast, joinMulticast),
	provider.Does(provider.LeaveMulticast, leaveMulticast),
)

// Do implements provider.Provider.
func (s *Session) Do(ctx context.Context, code provider.Code, request, grant any) error {
	if run, found := commands[code.Number]; found {
		return run(ctx, s, request, grant)
	}
	if run, found := ids.Commands[code.Number]; found {
		return run(ctx, s.cm, request, grant)
	}
	return fmt.Errorf("%w: command %d (%s)", verbs.ErrUnsupported, code.Number, code.Name)
}
