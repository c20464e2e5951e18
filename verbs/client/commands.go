//go:build linux

package client

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// commands are a client's, by what they are about: each implements an interface of package provider.
type commands struct {
	queries
	regions
	completions
	sharedQueues
	queuePairs
	tallies
	xrcDomains
	handles
	multicast
	ids
}

func newCommands(c *Client) commands {
	return commands{queries{c}, regions{c}, completions{c}, sharedQueues{c}, queuePairs{c}, tallies{c}, xrcDomains{c}, handles{c}, multicast{c}, ids{c}}
}

// queries are about the device.
type queries struct{ *Client }

// QueryDevice implements provider.Provider.
func (c queries) QueryDevice() (verbs.DeviceAttr, error) {
	return ask(c.Client, proto.QueryDevice, proto.None{})
}

// QueryPort implements provider.Provider.
func (c queries) QueryPort(r provider.QueryPortRequest) (verbs.PortAttr, error) {
	return ask(c.Client, proto.QueryPort, r)
}

// QueryGIDTable implements provider.Provider.
func (c queries) QueryGIDTable(r provider.QueryGIDTableRequest) (provider.QueryGIDTableGrant, error) {
	return ask(c.Client, proto.QueryGIDTable, r)
}

// QueryPKey implements provider.Provider.
func (c queries) QueryPKey(r provider.QueryPKeyRequest) (provider.QueryPKeyGrant, error) {
	return ask(c.Client, proto.QueryPKey, r)
}

// QueryRTValues implements provider.Provider.
func (c queries) QueryRTValues() (verbs.RTValues, error) {
	return ask(c.Client, proto.QueryRTValues, proto.None{})
}

// Counters implements provider.CounterReader.
func (c queries) Counters() ([]verbs.Counter, error) {
	return ask(c.Client, proto.Counters, proto.None{})
}

// AllocPD implements provider.Provider.
func (c *Client) AllocPD() (provider.AllocPDGrant, error) { return ask(c, proto.AllocPD, proto.None{}) }

// DeallocPD implements provider.Provider.
func (c *Client) DeallocPD(r provider.DeallocPDRequest) error { return free(c, proto.DeallocPD, r) }

// regions are a client's memory regions and windows.
type regions struct{ *Client }

// AllocMR implements provider.Provider.
func (c regions) AllocMR(r provider.AllocMRRequest) (provider.MRGrant, error) {
	return ask(c.Client, proto.AllocMR, r)
}

// errReach is for the program's own memory.
var errReach = fmt.Errorf("%w: the service cannot reach the program's memory; AllocMR makes memory that both can access", verbs.ErrUnsupported)

// RegMR implements provider.Provider.
func (c regions) RegMR(provider.RegMRRequest) (provider.MRGrant, error) {
	return provider.MRGrant{}, errReach
}

// ReregMR implements provider.Provider.
func (c regions) ReregMR(r provider.ReregMRRequest) error { return do(c.Client, proto.ReregMR, r) }

// DeregMR implements provider.Provider.
func (c regions) DeregMR(r provider.DeregMRRequest) error { return free(c.Client, proto.DeregMR, r) }

// AllocNullMR implements provider.Provider.
func (c regions) AllocNullMR(r provider.AllocNullMRRequest) (provider.MRGrant, error) {
	return ask(c.Client, proto.AllocNullMR, r)
}

// AllocFastMR implements provider.Provider.
func (c regions) AllocFastMR(r provider.AllocFastMRRequest) (provider.MRGrant, error) {
	return ask(c.Client, proto.AllocFastMR, r)
}

// MapFMR implements provider.Provider.
func (c regions) MapFMR(r provider.MapFMRRequest) error { return do(c.Client, proto.MapFMR, r) }

// UnmapFMR implements provider.Provider.
func (c regions) UnmapFMR(r provider.UnmapFMRRequest) error { return do(c.Client, proto.UnmapFMR, r) }

// CheckMRStatus implements provider.Provider.
func (c regions) CheckMRStatus(r provider.CheckMRStatusRequest) (provider.CheckMRStatusGrant, error) {
	return ask(c.Client, proto.CheckMRStatus, r)
}

// AllocCoherent implements provider.Provider.
func (c regions) AllocCoherent(r provider.AllocCoherentRequest) (provider.MRGrant, error) {
	return ask(c.Client, proto.AllocCoherent, r)
}

// AllocDM implements provider.Provider.
func (c regions) AllocDM(r provider.AllocDMRequest) (provider.AllocDMGrant, error) {
	return ask(c.Client, proto.AllocDM, r)
}

// FreeDM implements provider.Provider.
func (c regions) FreeDM(r provider.FreeDMRequest) error { return free(c.Client, proto.FreeDM, r) }

// RegDMMR implements provider.Provider.
func (c regions) RegDMMR(r provider.RegDMMRRequest) (provider.MRGrant, error) {
	return ask(c.Client, proto.RegDMMR, r)
}

// AllocMW implements provider.Provider.
func (c regions) AllocMW(r provider.AllocMWRequest) (provider.AllocMWGrant, error) {
	return ask(c.Client, proto.AllocMW, r)
}

// DeallocMW implements provider.Provider.
func (c regions) DeallocMW(r provider.DeallocMWRequest) error {
	return free(c.Client, proto.DeallocMW, r)
}

// tallies are a client's counters objects.
type tallies struct{ *Client }

// CreateCounters implements provider.Provider.
func (c tallies) CreateCounters() (provider.CreateCountersGrant, error) {
	return ask(c.Client, proto.CreateCounters, proto.None{})
}

// AttachCounters implements provider.Provider.
func (c tallies) AttachCounters(r provider.AttachCountersRequest) error {
	return do(c.Client, proto.AttachCounters, r)
}

// ReadCounters implements provider.Provider.
func (c tallies) ReadCounters(r provider.ReadCountersRequest) (provider.ReadCountersGrant, error) {
	return ask(c.Client, proto.ReadQPCounters, r)
}

// DestroyCounters implements provider.Provider.
func (c tallies) DestroyCounters(r provider.DestroyCountersRequest) error {
	return free(c.Client, proto.DestroyCounters, r)
}

// queuePairs are a client's.
type queuePairs struct{ *Client }

// CreateQP implements provider.Provider.
func (c queuePairs) CreateQP(r provider.CreateQPRequest) (provider.CreateQPGrant, error) {
	return ask(c.Client, proto.CreateQP, r)
}

// ModifyQP implements provider.Provider.
func (c queuePairs) ModifyQP(r provider.ModifyQPRequest) (provider.ModifyQPGrant, error) {
	return ask(c.Client, proto.ModifyQP, r)
}

// QueryQP implements provider.Provider.
func (c queuePairs) QueryQP(r provider.QueryQPRequest) (provider.QueryQPGrant, error) {
	return ask(c.Client, proto.QueryQP, r)
}

// DestroyQP implements provider.Provider.
func (c queuePairs) DestroyQP(r provider.DestroyQPRequest) error {
	return free(c.Client, proto.DestroyQP, r)
}

// sharedQueues are a client's shared receive queues.
type sharedQueues struct{ *Client }

// CreateSRQ implements provider.Provider.
func (c sharedQueues) CreateSRQ(r provider.CreateSRQRequest) (provider.CreateSRQGrant, error) {
	return ask(c.Client, proto.CreateSRQ, r)
}

// ModifySRQ implements provider.Provider.
func (c sharedQueues) ModifySRQ(r provider.ModifySRQRequest) (provider.ModifySRQGrant, error) {
	return ask(c.Client, proto.ModifySRQ, r)
}

// QuerySRQ implements provider.Provider.
func (c sharedQueues) QuerySRQ(r provider.QuerySRQRequest) (provider.QuerySRQGrant, error) {
	return ask(c.Client, proto.QuerySRQ, r)
}

// DestroySRQ implements provider.Provider.
func (c sharedQueues) DestroySRQ(r provider.DestroySRQRequest) error {
	return free(c.Client, proto.DestroySRQ, r)
}

// handles are a client's address handles.
type handles struct{ *Client }

// CreateAH implements provider.Provider.
func (c handles) CreateAH(ctx context.Context, r provider.CreateAHRequest) (provider.CreateAHGrant, error) {
	return askAndWait(ctx, c.Client, proto.CreateAH, r)
}

// ModifyAH implements provider.Provider.
func (c handles) ModifyAH(ctx context.Context, r provider.ModifyAHRequest) error {
	_, err := askAndWait(ctx, c.Client, proto.ModifyAH, r)
	return err
}

// QueryAH implements provider.Provider.
func (c handles) QueryAH(r provider.QueryAHRequest) (provider.QueryAHGrant, error) {
	return ask(c.Client, proto.QueryAH, r)
}

// DestroyAH implements provider.Provider.
func (c handles) DestroyAH(r provider.DestroyAHRequest) error {
	return free(c.Client, proto.DestroyAH, r)
}

// multicast is a client's groups.
type multicast struct{ *Client }

// AttachMcast implements provider.Provider.
func (c multicast) AttachMcast(r provider.McastRequest) error {
	return do(c.Client, proto.AttachMcast, r)
}

// DetachMcast implements provider.Provider.
func (c multicast) DetachMcast(r provider.McastRequest) error {
	return free(c.Client, proto.DetachMcast, r)
}

// JoinMulticast implements provider.Provider.
func (c multicast) JoinMulticast(r provider.JoinMulticastRequest) (provider.JoinMulticastGrant, error) {
	return ask(c.Client, proto.JoinMulticast, r)
}

// LeaveMulticast implements provider.Provider.
func (c multicast) LeaveMulticast(r provider.LeaveMulticastRequest) error {
	return free(c.Client, proto.LeaveMulticast, r)
}
