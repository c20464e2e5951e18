//go:build linux

package client

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// QueryDevice implements provider.Provider.
func (c *Client) QueryDevice() (verbs.DeviceAttr, error) {
	return ask(c, proto.QueryDevice, proto.None{})
}

// QueryPort implements provider.Provider.
func (c *Client) QueryPort(r provider.QueryPortRequest) (verbs.PortAttr, error) {
	return ask(c, proto.QueryPort, r)
}

// QueryGIDTable implements provider.Provider.
func (c *Client) QueryGIDTable(r provider.QueryGIDTableRequest) (provider.QueryGIDTableGrant, error) {
	return ask(c, proto.QueryGIDTable, r)
}

// QueryPKey implements provider.Provider.
func (c *Client) QueryPKey(r provider.QueryPKeyRequest) (provider.QueryPKeyGrant, error) {
	return ask(c, proto.QueryPKey, r)
}

// QueryRTValues implements provider.Provider.
func (c *Client) QueryRTValues() (verbs.RTValues, error) {
	return ask(c, proto.QueryRTValues, proto.None{})
}

// Counters implements provider.CounterReader.
func (c *Client) Counters() ([]verbs.Counter, error) { return ask(c, proto.Counters, proto.None{}) }

// AllocPD implements provider.Provider.
func (c *Client) AllocPD() (provider.AllocPDGrant, error) { return ask(c, proto.AllocPD, proto.None{}) }

// DeallocPD implements provider.Provider.
func (c *Client) DeallocPD(r provider.DeallocPDRequest) error { return free(c, proto.DeallocPD, r) }

// AllocMR implements provider.Provider.
func (c *Client) AllocMR(r provider.AllocMRRequest) (provider.MRGrant, error) {
	return ask(c, proto.AllocMR, r)
}

// errReach is for the program's own memory.
var errReach = fmt.Errorf("%w: the service cannot reach the program's memory; AllocMR makes memory that both can access", verbs.ErrUnsupported)

// RegMR implements provider.Provider.
func (c *Client) RegMR(provider.RegMRRequest) (provider.MRGrant, error) {
	return provider.MRGrant{}, errReach
}

// ReregMR implements provider.Provider.
func (c *Client) ReregMR(r provider.ReregMRRequest) error { return do(c, proto.ReregMR, r) }

// DeregMR implements provider.Provider.
func (c *Client) DeregMR(r provider.DeregMRRequest) error { return free(c, proto.DeregMR, r) }

// CreateCounters implements provider.Provider.
func (c *Client) CreateCounters() (provider.CreateCountersGrant, error) {
	return ask(c, proto.CreateCounters, proto.None{})
}

// AttachCounters implements provider.Provider.
func (c *Client) AttachCounters(r provider.AttachCountersRequest) error {
	return do(c, proto.AttachCounters, r)
}

// ReadCounters implements provider.Provider.
func (c *Client) ReadCounters(r provider.ReadCountersRequest) (provider.ReadCountersGrant, error) {
	return ask(c, proto.ReadQPCounters, r)
}

// DestroyCounters implements provider.Provider.
func (c *Client) DestroyCounters(r provider.DestroyCountersRequest) error {
	return free(c, proto.DestroyCounters, r)
}

// AllocNullMR implements provider.Provider.
func (c *Client) AllocNullMR(r provider.AllocNullMRRequest) (provider.MRGrant, error) {
	return ask(c, proto.AllocNullMR, r)
}

// AllocFastMR implements provider.Provider.
func (c *Client) AllocFastMR(r provider.AllocFastMRRequest) (provider.MRGrant, error) {
	return ask(c, proto.AllocFastMR, r)
}

// MapFMR implements provider.Provider.
func (c *Client) MapFMR(r provider.MapFMRRequest) error { return do(c, proto.MapFMR, r) }

// UnmapFMR implements provider.Provider.
func (c *Client) UnmapFMR(r provider.UnmapFMRRequest) error { return do(c, proto.UnmapFMR, r) }

// CheckMRStatus implements provider.Provider.
func (c *Client) CheckMRStatus(r provider.CheckMRStatusRequest) (provider.CheckMRStatusGrant, error) {
	return ask(c, proto.CheckMRStatus, r)
}

// AllocCoherent implements provider.Provider.
func (c *Client) AllocCoherent(r provider.AllocCoherentRequest) (provider.MRGrant, error) {
	return ask(c, proto.AllocCoherent, r)
}

// AllocDM implements provider.Provider.
func (c *Client) AllocDM(r provider.AllocDMRequest) (provider.AllocDMGrant, error) {
	return ask(c, proto.AllocDM, r)
}

// FreeDM implements provider.Provider.
func (c *Client) FreeDM(r provider.FreeDMRequest) error { return free(c, proto.FreeDM, r) }

// RegDMMR implements provider.Provider.
func (c *Client) RegDMMR(r provider.RegDMMRRequest) (provider.MRGrant, error) {
	return ask(c, proto.RegDMMR, r)
}

// AllocMW implements provider.Provider.
func (c *Client) AllocMW(r provider.AllocMWRequest) (provider.AllocMWGrant, error) {
	return ask(c, proto.AllocMW, r)
}

// DeallocMW implements provider.Provider.
func (c *Client) DeallocMW(r provider.DeallocMWRequest) error { return free(c, proto.DeallocMW, r) }

// CreateQP implements provider.Provider.
func (c *Client) CreateQP(r provider.CreateQPRequest) (provider.CreateQPGrant, error) {
	return ask(c, proto.CreateQP, r)
}

// ModifyQP implements provider.Provider.
func (c *Client) ModifyQP(r provider.ModifyQPRequest) (provider.ModifyQPGrant, error) {
	return ask(c, proto.ModifyQP, r)
}

// QueryQP implements provider.Provider.
func (c *Client) QueryQP(r provider.QueryQPRequest) (provider.QueryQPGrant, error) {
	return ask(c, proto.QueryQP, r)
}

// DestroyQP implements provider.Provider.
func (c *Client) DestroyQP(r provider.DestroyQPRequest) error { return free(c, proto.DestroyQP, r) }

// CreateSRQ implements provider.Provider.
func (c *Client) CreateSRQ(r provider.CreateSRQRequest) (provider.CreateSRQGrant, error) {
	return ask(c, proto.CreateSRQ, r)
}

// ModifySRQ implements provider.Provider.
func (c *Client) ModifySRQ(r provider.ModifySRQRequest) (provider.ModifySRQGrant, error) {
	return ask(c, proto.ModifySRQ, r)
}

// QuerySRQ implements provider.Provider.
func (c *Client) QuerySRQ(r provider.QuerySRQRequest) (provider.QuerySRQGrant, error) {
	return ask(c, proto.QuerySRQ, r)
}

// DestroySRQ implements provider.Provider.
func (c *Client) DestroySRQ(r provider.DestroySRQRequest) error { return free(c, proto.DestroySRQ, r) }

// CreateAH implements provider.Provider.
func (c *Client) CreateAH(ctx context.Context, r provider.CreateAHRequest) (provider.CreateAHGrant, error) {
	return askAndWait(ctx, c, proto.CreateAH, r)
}

// ModifyAH implements provider.Provider.
func (c *Client) ModifyAH(ctx context.Context, r provider.ModifyAHRequest) error {
	_, err := askAndWait(ctx, c, proto.ModifyAH, r)
	return err
}

// QueryAH implements provider.Provider.
func (c *Client) QueryAH(r provider.QueryAHRequest) (provider.QueryAHGrant, error) {
	return ask(c, proto.QueryAH, r)
}

// DestroyAH implements provider.Provider.
func (c *Client) DestroyAH(r provider.DestroyAHRequest) error { return free(c, proto.DestroyAH, r) }

// AttachMcast implements provider.Provider.
func (c *Client) AttachMcast(r provider.McastRequest) error { return do(c, proto.AttachMcast, r) }

// DetachMcast implements provider.Provider.
func (c *Client) DetachMcast(r provider.McastRequest) error { return free(c, proto.DetachMcast, r) }

// JoinMulticast implements provider.Provider.
func (c *Client) JoinMulticast(r provider.JoinMulticastRequest) (provider.JoinMulticastGrant, error) {
	return ask(c, proto.JoinMulticast, r)
}

// LeaveMulticast implements provider.Provider.
func (c *Client) LeaveMulticast(r provider.LeaveMulticastRequest) error {
	return free(c, proto.LeaveMulticast, r)
}
