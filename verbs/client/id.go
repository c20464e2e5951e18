//go:build linux

package client

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// DestroyEventChannel implements verbs.Provider.
func (c *Client) DestroyEventChannel(r verbs.DestroyEventChannelRequest) error {
	return free(c, proto.DestroyEventChannel, r)
}

// GetCMEvent implements verbs.Provider.
func (c *Client) GetCMEvent(r verbs.GetCMEventRequest) (verbs.GetCMEventGrant, error) {
	return ask(c, proto.GetCMEvent, r)
}

// CreateID implements verbs.Provider.
func (c *Client) CreateID(r verbs.CreateIDRequest) (verbs.CreateIDGrant, error) {
	return ask(c, proto.CreateID, r)
}

// DestroyID implements verbs.Provider.
func (c *Client) DestroyID(r verbs.DestroyIDRequest) error { return free(c, proto.DestroyID, r) }

// MigrateID implements verbs.Provider.
func (c *Client) MigrateID(r verbs.MigrateIDRequest) error { return do(c, proto.MigrateID, r) }

// SetIDOption implements verbs.Provider.
func (c *Client) SetIDOption(r verbs.SetIDOptionRequest) error { return do(c, proto.SetIDOption, r) }

// QueryID implements verbs.Provider.
func (c *Client) QueryID(r verbs.QueryIDRequest) (verbs.QueryIDGrant, error) {
	return ask(c, proto.QueryID, r)
}

// BindID implements verbs.Provider.
func (c *Client) BindID(r verbs.BindIDRequest) (verbs.BindIDGrant, error) {
	return ask(c, proto.BindID, r)
}

// FindRoute implements verbs.Provider.
func (c *Client) FindRoute(r verbs.FindRouteRequest) (verbs.FindRouteGrant, error) {
	return ask(c, proto.FindRoute, r)
}

// ResolveIDAddr implements verbs.Provider.
func (c *Client) ResolveIDAddr(r verbs.ResolveIDAddrRequest) error {
	return do(c, proto.ResolveIDAddr, r)
}

// ResolveIDRoute implements verbs.Provider.
func (c *Client) ResolveIDRoute(r verbs.ResolveIDRouteRequest) error {
	return do(c, proto.ResolveIDRoute, r)
}

// InitIDQPAttr implements verbs.Provider.
func (c *Client) InitIDQPAttr(r verbs.InitIDQPAttrRequest) (verbs.InitIDQPAttrGrant, error) {
	return ask(c, proto.InitIDQPAttr, r)
}

// ListenID implements verbs.Provider.
func (c *Client) ListenID(r verbs.ListenIDRequest) error { return do(c, proto.ListenID, r) }

// ConnectID implements verbs.Provider.
func (c *Client) ConnectID(r verbs.ConnectIDRequest) error { return do(c, proto.ConnectID, r) }

// AcceptID implements verbs.Provider.
func (c *Client) AcceptID(r verbs.AcceptIDRequest) error { return do(c, proto.AcceptID, r) }

// RejectID implements verbs.Provider.
func (c *Client) RejectID(r verbs.RejectIDRequest) error { return do(c, proto.RejectID, r) }

// DisconnectID implements verbs.Provider.
func (c *Client) DisconnectID(r verbs.DisconnectIDRequest) error { return do(c, proto.DisconnectID, r) }

// NotifyID implements verbs.Provider.
func (c *Client) NotifyID(r verbs.NotifyIDRequest) error { return do(c, proto.NotifyID, r) }

// JoinID implements verbs.Provider.
func (c *Client) JoinID(r verbs.JoinIDRequest) error { return do(c, proto.JoinID, r) }

// LeaveID implements verbs.Provider.
func (c *Client) LeaveID(r verbs.LeaveIDRequest) (verbs.LeaveIDGrant, error) {
	return ask(c, proto.LeaveID, r)
}
