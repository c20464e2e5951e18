package rig

import (
	"context"
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// judged is a Provider that checks each error of another: it must be one of package verbs.
type judged struct{ judgedIDs }

// judgedIDs is one that checks those of commands about connection ids.
type judgedIDs struct {
	provider.Provider
	t testing.TB
}

// runnable is a judged Provider whose card programs can run.
type runnable struct {
	led
	provider.Progressor
}

// led is a judged Provider for which a program that waits can work.
type led struct {
	judged
	provider.Leader
}

// remote is a judged Provider whose card runs in another process.
type remote struct {
	led
	provider.Spinner
}

func Judge(t testing.TB, p provider.Provider) provider.Provider {
	j := judged{judgedIDs{p, t}}
	leader, leads := p.(provider.Leader)
	progress, runs := p.(provider.Progressor)
	spinner, spins := p.(provider.Spinner)
	switch {
	case runs && leads:
		return runnable{led{j, leader}, progress}
	case leads && spins:
		return remote{led{j, leader}, spinner}
	case leads:
		return led{j, leader}
	case runs:
		t.Fatal("a Provider whose card programs run, but not while they wait: put it under the judge here")
	}
	return j
}

func (j judgedIDs) judge(command string, err error) error {
	if err != nil && verbs.KindOf(err) == nil {
		j.t.Errorf("%s: %v is not an error of package verbs", command, err)
	}
	return err
}

func (j judged) Claim() error { return j.judge("Claim", j.Provider.Claim()) }
func (j judged) Err() error   { return j.judge("Err", j.Provider.Err()) }

// GetAsyncEvent may give the error of its context too.
func (j judged) GetAsyncEvent(ctx context.Context) (provider.EventReport, error) {
	report, err := j.Provider.GetAsyncEvent(ctx)
	if ended := ctx.Err(); err != nil && ended != nil && errors.Is(err, ended) {
		return report, err
	}
	return report, j.judge("GetAsyncEvent", err)
}

// Counters is provider.CounterReader's, which a Provider may lack.
func (j judged) Counters() ([]verbs.Counter, error) {
	reader, is := j.Provider.(provider.CounterReader)
	if !is {
		return nil, verbs.ErrUnsupported
	}
	all, err := reader.Counters()
	return all, j.judge("Counters", err)
}

func (j judged) QueryDevice() (verbs.DeviceAttr, error) {
	attr, err := j.Provider.QueryDevice()
	return attr, j.judge("QueryDevice", err)
}

func (j judged) QueryPort(r provider.QueryPortRequest) (verbs.PortAttr, error) {
	attr, err := j.Provider.QueryPort(r)
	return attr, j.judge("QueryPort", err)
}

func (j judged) QueryGIDTable(r provider.QueryGIDTableRequest) (provider.QueryGIDTableGrant, error) {
	grant, err := j.Provider.QueryGIDTable(r)
	return grant, j.judge("QueryGIDTable", err)
}

func (j judged) QueryPKey(r provider.QueryPKeyRequest) (provider.QueryPKeyGrant, error) {
	grant, err := j.Provider.QueryPKey(r)
	return grant, j.judge("QueryPKey", err)
}

func (j judged) QueryRTValues() (verbs.RTValues, error) {
	values, err := j.Provider.QueryRTValues()
	return values, j.judge("QueryRTValues", err)
}

func (j judged) AllocPD() (provider.AllocPDGrant, error) {
	grant, err := j.Provider.AllocPD()
	return grant, j.judge("AllocPD", err)
}

func (j judged) DeallocPD(r provider.DeallocPDRequest) error {
	return j.judge("DeallocPD", j.Provider.DeallocPD(r))
}

func (j judged) AllocMR(r provider.AllocMRRequest) (provider.MRGrant, error) {
	grant, err := j.Provider.AllocMR(r)
	return grant, j.judge("AllocMR", err)
}

func (j judged) RegMR(r provider.RegMRRequest) (provider.MRGrant, error) {
	grant, err := j.Provider.RegMR(r)
	return grant, j.judge("RegMR", err)
}

func (j judged) ReregMR(r provider.ReregMRRequest) error {
	return j.judge("ReregMR", j.Provider.ReregMR(r))
}

func (j judged) DeregMR(r provider.DeregMRRequest) error {
	return j.judge("DeregMR", j.Provider.DeregMR(r))
}

func (j judged) CreateCounters() (provider.CreateCountersGrant, error) {
	grant, err := j.Provider.CreateCounters()
	return grant, j.judge("CreateCounters", err)
}

func (j judged) AttachCounters(r provider.AttachCountersRequest) error {
	return j.judge("AttachCounters", j.Provider.AttachCounters(r))
}

func (j judged) ReadCounters(r provider.ReadCountersRequest) (provider.ReadCountersGrant, error) {
	grant, err := j.Provider.ReadCounters(r)
	return grant, j.judge("ReadCounters", err)
}

func (j judged) DestroyCounters(r provider.DestroyCountersRequest) error {
	return j.judge("DestroyCounters", j.Provider.DestroyCounters(r))
}

func (j judged) AllocNullMR(r provider.AllocNullMRRequest) (provider.MRGrant, error) {
	grant, err := j.Provider.AllocNullMR(r)
	return grant, j.judge("AllocNullMR", err)
}

func (j judged) AllocFastMR(r provider.AllocFastMRRequest) (provider.MRGrant, error) {
	grant, err := j.Provider.AllocFastMR(r)
	return grant, j.judge("AllocFastMR", err)
}

func (j judged) MapFMR(r provider.MapFMRRequest) error {
	return j.judge("MapFMR", j.Provider.MapFMR(r))
}

func (j judged) UnmapFMR(r provider.UnmapFMRRequest) error {
	return j.judge("UnmapFMR", j.Provider.UnmapFMR(r))
}

func (j judged) CheckMRStatus(r provider.CheckMRStatusRequest) (provider.CheckMRStatusGrant, error) {
	grant, err := j.Provider.CheckMRStatus(r)
	return grant, j.judge("CheckMRStatus", err)
}

func (j judged) AllocCoherent(r provider.AllocCoherentRequest) (provider.MRGrant, error) {
	grant, err := j.Provider.AllocCoherent(r)
	return grant, j.judge("AllocCoherent", err)
}

func (j judged) AllocDM(r provider.AllocDMRequest) (provider.AllocDMGrant, error) {
	grant, err := j.Provider.AllocDM(r)
	return grant, j.judge("AllocDM", err)
}

func (j judged) FreeDM(r provider.FreeDMRequest) error {
	return j.judge("FreeDM", j.Provider.FreeDM(r))
}

func (j judged) RegDMMR(r provider.RegDMMRRequest) (provider.MRGrant, error) {
	grant, err := j.Provider.RegDMMR(r)
	return grant, j.judge("RegDMMR", err)
}

func (j judged) AllocMW(r provider.AllocMWRequest) (provider.AllocMWGrant, error) {
	grant, err := j.Provider.AllocMW(r)
	return grant, j.judge("AllocMW", err)
}

func (j judged) DeallocMW(r provider.DeallocMWRequest) error {
	return j.judge("DeallocMW", j.Provider.DeallocMW(r))
}

func (j judged) CreateCompChannel() (provider.CreateCompChannelGrant, error) {
	grant, err := j.Provider.CreateCompChannel()
	return grant, j.judge("CreateCompChannel", err)
}

func (j judged) DestroyCompChannel(r provider.DestroyCompChannelRequest) error {
	return j.judge("DestroyCompChannel", j.Provider.DestroyCompChannel(r))
}

func (j judged) CreateCQ(r provider.CreateCQRequest) (provider.CreateCQGrant, error) {
	grant, err := j.Provider.CreateCQ(r)
	return grant, j.judge("CreateCQ", err)
}

func (j judged) ResizeCQ(r provider.ResizeCQRequest) (provider.ResizeCQGrant, error) {
	grant, err := j.Provider.ResizeCQ(r)
	return grant, j.judge("ResizeCQ", err)
}

func (j judged) ModifyCQ(r provider.ModifyCQRequest) error {
	return j.judge("ModifyCQ", j.Provider.ModifyCQ(r))
}

func (j judged) CheckCQ(r provider.CheckCQRequest) error {
	return j.judge("CheckCQ", j.Provider.CheckCQ(r))
}

func (j judged) DestroyCQ(r provider.DestroyCQRequest) error {
	return j.judge("DestroyCQ", j.Provider.DestroyCQ(r))
}

func (j judged) CreateSRQ(r provider.CreateSRQRequest) (provider.CreateSRQGrant, error) {
	grant, err := j.Provider.CreateSRQ(r)
	return grant, j.judge("CreateSRQ", err)
}

func (j judged) ModifySRQ(r provider.ModifySRQRequest) (provider.ModifySRQGrant, error) {
	grant, err := j.Provider.ModifySRQ(r)
	return grant, j.judge("ModifySRQ", err)
}

func (j judged) QuerySRQ(r provider.QuerySRQRequest) (provider.QuerySRQGrant, error) {
	grant, err := j.Provider.QuerySRQ(r)
	return grant, j.judge("QuerySRQ", err)
}

func (j judged) DestroySRQ(r provider.DestroySRQRequest) error {
	return j.judge("DestroySRQ", j.Provider.DestroySRQ(r))
}

func (j judged) CreateQP(r provider.CreateQPRequest) (provider.CreateQPGrant, error) {
	grant, err := j.Provider.CreateQP(r)
	return grant, j.judge("CreateQP", err)
}

func (j judged) ModifyQP(r provider.ModifyQPRequest) (provider.ModifyQPGrant, error) {
	grant, err := j.Provider.ModifyQP(r)
	return grant, j.judge("ModifyQP", err)
}

func (j judged) QueryQP(r provider.QueryQPRequest) (provider.QueryQPGrant, error) {
	grant, err := j.Provider.QueryQP(r)
	return grant, j.judge("QueryQP", err)
}

func (j judged) DestroyQP(r provider.DestroyQPRequest) error {
	return j.judge("DestroyQP", j.Provider.DestroyQP(r))
}

func (j judged) OpenXRCD(r provider.OpenXRCDRequest) (provider.OpenXRCDGrant, error) {
	grant, err := j.Provider.OpenXRCD(r)
	return grant, j.judge("OpenXRCD", err)
}

func (j judged) CloseXRCD(r provider.CloseXRCDRequest) error {
	return j.judge("CloseXRCD", j.Provider.CloseXRCD(r))
}

func (j judged) CreateXRCSRQ(r provider.CreateXRCSRQRequest) (provider.CreateXRCSRQGrant, error) {
	grant, err := j.Provider.CreateXRCSRQ(r)
	return grant, j.judge("CreateXRCSRQ", err)
}

func (j judged) CreateXRCTarget(r provider.CreateXRCTargetRequest) (provider.OpenQPGrant, error) {
	grant, err := j.Provider.CreateXRCTarget(r)
	return grant, j.judge("CreateXRCTarget", err)
}

func (j judged) OpenQP(r provider.OpenQPRequest) (provider.OpenQPGrant, error) {
	grant, err := j.Provider.OpenQP(r)
	return grant, j.judge("OpenQP", err)
}

func (j judged) CreateAH(ctx context.Context, r provider.CreateAHRequest) (provider.CreateAHGrant, error) {
	grant, err := j.Provider.CreateAH(ctx, r)
	return grant, j.judge("CreateAH", err)
}

func (j judged) ModifyAH(ctx context.Context, r provider.ModifyAHRequest) error {
	return j.judge("ModifyAH", j.Provider.ModifyAH(ctx, r))
}

func (j judged) QueryAH(r provider.QueryAHRequest) (provider.QueryAHGrant, error) {
	grant, err := j.Provider.QueryAH(r)
	return grant, j.judge("QueryAH", err)
}

func (j judged) DestroyAH(r provider.DestroyAHRequest) error {
	return j.judge("DestroyAH", j.Provider.DestroyAH(r))
}

func (j judged) AttachMcast(r provider.McastRequest) error {
	return j.judge("AttachMcast", j.Provider.AttachMcast(r))
}

func (j judged) DetachMcast(r provider.McastRequest) error {
	return j.judge("DetachMcast", j.Provider.DetachMcast(r))
}

func (j judged) JoinMulticast(r provider.JoinMulticastRequest) (provider.JoinMulticastGrant, error) {
	grant, err := j.Provider.JoinMulticast(r)
	return grant, j.judge("JoinMulticast", err)
}

func (j judged) LeaveMulticast(r provider.LeaveMulticastRequest) error {
	return j.judge("LeaveMulticast", j.Provider.LeaveMulticast(r))
}
