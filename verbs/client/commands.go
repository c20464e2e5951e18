//go:build linux

package client

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// QueryDevice implements verbs.Provider.
func (c *Client) QueryDevice() (verbs.DeviceAttr, error) {
	return ask(c, proto.QueryDevice, proto.None{})
}

// QueryPort implements verbs.Provider.
func (c *Client) QueryPort(r verbs.QueryPortRequest) (verbs.PortAttr, error) {
	return ask(c, proto.QueryPort, r)
}

// QueryGIDTable implements verbs.Provider.
func (c *Client) QueryGIDTable(r verbs.QueryGIDTableRequest) (verbs.QueryGIDTableGrant, error) {
	return ask(c, proto.QueryGIDTable, r)
}

// QueryPKey implements verbs.Provider.
func (c *Client) QueryPKey(r verbs.QueryPKeyRequest) (verbs.QueryPKeyGrant, error) {
	return ask(c, proto.QueryPKey, r)
}

// QueryRTValues implements verbs.Provider.
func (c *Client) QueryRTValues() (verbs.RTValues, error) {
	return ask(c, proto.QueryRTValues, proto.None{})
}

// Counters implements verbs.CounterReader.
func (c *Client) Counters() ([]verbs.Counter, error) { return ask(c, proto.Counters, proto.None{}) }

// AllocPD implements verbs.Provider.
func (c *Client) AllocPD() (verbs.AllocPDGrant, error) { return ask(c, proto.AllocPD, proto.None{}) }

// DeallocPD implements verbs.Provider.
func (c *Client) DeallocPD(r verbs.DeallocPDRequest) error { return free(c, proto.DeallocPD, r) }

// AllocMR implements verbs.Provider.
func (c *Client) AllocMR(r verbs.AllocMRRequest) (verbs.MRGrant, error) {
	return ask(c, proto.AllocMR, r)
}

// errReach is for the program's own memory.
var errReach = fmt.Errorf("%w: the service cannot reach the program's memory; AllocMR makes memory that both can access", verbs.ErrUnsupported)

// RegMR implements verbs.Provider.
func (c *Client) RegMR(verbs.RegMRRequest) (verbs.MRGrant, error) { return verbs.MRGrant{}, errReach }

// ReregMR implements verbs.Provider.
func (c *Client) ReregMR(r verbs.ReregMRRequest) error { return do(c, proto.ReregMR, r) }

// DeregMR implements verbs.Provider.
func (c *Client) DeregMR(r verbs.DeregMRRequest) error { return free(c, proto.DeregMR, r) }

// AllocMW implements verbs.Provider.
func (c *Client) AllocMW(r verbs.AllocMWRequest) (verbs.AllocMWGrant, error) {
	return ask(c, proto.AllocMW, r)
}

// DeallocMW implements verbs.Provider.
func (c *Client) DeallocMW(r verbs.DeallocMWRequest) error { return free(c, proto.DeallocMW, r) }

// CreateQP implements verbs.Provider.
func (c *Client) CreateQP(r verbs.CreateQPRequest) (verbs.CreateQPGrant, error) {
	return ask(c, proto.CreateQP, r)
}

// ModifyQP implements verbs.Provider.
func (c *Client) ModifyQP(r verbs.ModifyQPRequest) (verbs.ModifyQPGrant, error) {
	return ask(c, proto.ModifyQP, r)
}

// QueryQP implements verbs.Provider.
func (c *Client) QueryQP(r verbs.QueryQPRequest) (verbs.QueryQPGrant, error) {
	return ask(c, proto.QueryQP, r)
}

// DestroyQP implements verbs.Provider.
func (c *Client) DestroyQP(r verbs.DestroyQPRequest) error { return free(c, proto.DestroyQP, r) }

// CreateSRQ implements verbs.Provider.
func (c *Client) CreateSRQ(r verbs.CreateSRQRequest) (verbs.CreateSRQGrant, error) {
	return ask(c, proto.CreateSRQ, r)
}

// ModifySRQ implements verbs.Provider.
func (c *Client) ModifySRQ(r verbs.ModifySRQRequest) (verbs.ModifySRQGrant, error) {
	return ask(c, proto.ModifySRQ, r)
}

// QuerySRQ implements verbs.Provider.
func (c *Client) QuerySRQ(r verbs.QuerySRQRequest) (verbs.QuerySRQGrant, error) {
	return ask(c, proto.QuerySRQ, r)
}

// DestroySRQ implements verbs.Provider.
func (c *Client) DestroySRQ(r verbs.DestroySRQRequest) error { return free(c, proto.DestroySRQ, r) }

// CreateAH implements verbs.Provider.
func (c *Client) CreateAH(ctx context.Context, r verbs.CreateAHRequest) (verbs.CreateAHGrant, error) {
	return askAndWait(ctx, c, proto.CreateAH, r)
}

// ModifyAH implements verbs.Provider.
func (c *Client) ModifyAH(ctx context.Context, r verbs.ModifyAHRequest) error {
	_, err := askAndWait(ctx, c, proto.ModifyAH, r)
	return err
}

// QueryAH implements verbs.Provider.
func (c *Client) QueryAH(r verbs.QueryAHRequest) (verbs.QueryAHGrant, error) {
	return ask(c, proto.QueryAH, r)
}

// DestroyAH implements verbs.Provider.
func (c *Client) DestroyAH(r verbs.DestroyAHRequest) error { return free(c, proto.DestroyAH, r) }

// AttachMcast implements verbs.Provider.
func (c *Client) AttachMcast(r verbs.McastRequest) error { return do(c, proto.AttachMcast, r) }

// DetachMcast implements verbs.Provider.
func (c *Client) DetachMcast(r verbs.McastRequest) error { return free(c, proto.DetachMcast, r) }

// JoinMulticast implements verbs.Provider.
func (c *Client) JoinMulticast(r verbs.JoinMulticastRequest) (verbs.JoinMulticastGrant, error) {
	return ask(c, proto.JoinMulticast, r)
}

// LeaveMulticast implements verbs.Provider.
func (c *Client) LeaveMulticast(r verbs.LeaveMulticastRequest) error {
	return free(c, proto.LeaveMulticast, r)
}
