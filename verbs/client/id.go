//go:build linux

package client

import (
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// DestroyEventChannel implements provider.Provider.
func (c *Client) DestroyEventChannel(r provider.DestroyEventChannelRequest) error {
	return free(c, proto.DestroyEventChannel, r)
}

// GetCMEvent implements provider.Provider.
func (c *Client) GetCMEvent(r provider.GetCMEventRequest) (provider.GetCMEventGrant, error) {
	return ask(c, proto.GetCMEvent, r)
}

// CreateID implements provider.Provider.
func (c *Client) CreateID(r provider.CreateIDRequest) (provider.CreateIDGrant, error) {
	return ask(c, proto.CreateID, r)
}

// DestroyID implements provider.Provider.
func (c *Client) DestroyID(r provider.DestroyIDRequest) error { return free(c, proto.DestroyID, r) }

// MigrateID implements provider.Provider.
func (c *Client) MigrateID(r provider.MigrateIDRequest) error { return do(c, proto.MigrateID, r) }

// SetIDOption implements provider.Provider.
func (c *Client) SetIDOption(r provider.SetIDOptionRequest) error { return do(c, proto.SetIDOption, r) }

// QueryID implements provider.Provider.
func (c *Client) QueryID(r provider.QueryIDRequest) (provider.QueryIDGrant, error) {
	return ask(c, proto.QueryID, r)
}

// BindID implements provider.Provider.
func (c *Client) BindID(r provider.BindIDRequest) (provider.BindIDGrant, error) {
	return ask(c, proto.BindID, r)
}

// FindRoute implements provider.Provider.
func (c *Client) FindRoute(r provider.FindRouteRequest) (provider.FindRouteGrant, error) {
	return ask(c, proto.FindRoute, r)
}

// ResolveIDAddr implements provider.Provider.
func (c *Client) ResolveIDAddr(r provider.ResolveIDAddrRequest) error {
	return do(c, proto.ResolveIDAddr, r)
}

// SetIDPath implements provider.Provider.
func (c *Client) SetIDPath(r provider.SetIDPathRequest) error { return do(c, proto.SetIDPath, r) }

// ResolveIDRoute implements provider.Provider.
func (c *Client) ResolveIDRoute(r provider.ResolveIDRouteRequest) error {
	return do(c, proto.ResolveIDRoute, r)
}

// InitIDQPAttr implements provider.Provider.
func (c *Client) InitIDQPAttr(r provider.InitIDQPAttrRequest) (provider.InitIDQPAttrGrant, error) {
	return ask(c, proto.InitIDQPAttr, r)
}

// ListenID implements provider.Provider.
func (c *Client) ListenID(r provider.ListenIDRequest) error { return do(c, proto.ListenID, r) }

// ConnectID implements provider.Provider.
func (c *Client) ConnectID(r provider.ConnectIDRequest) error { return do(c, proto.ConnectID, r) }

// AcceptID implements provider.Provider.
func (c *Client) AcceptID(r provider.AcceptIDRequest) error { return do(c, proto.AcceptID, r) }

// RejectID implements provider.Provider.
func (c *Client) RejectID(r provider.RejectIDRequest) error { return do(c, proto.RejectID, r) }

// DisconnectID implements provider.Provider.
func (c *Client) DisconnectID(r provider.DisconnectIDRequest) error {
	return do(c, proto.DisconnectID, r)
}

// NotifyID implements provider.Provider.
func (c *Client) NotifyID(r provider.NotifyIDRequest) error { return do(c, proto.NotifyID, r) }

// JoinID implements provider.Provider.
func (c *Client) JoinID(r provider.JoinIDRequest) error { return do(c, proto.JoinID, r) }

// LeaveID implements provider.Provider.
func (c *Client) LeaveID(r provider.LeaveIDRequest) (provider.LeaveIDGrant, error) {
	return ask(c, proto.LeaveID, r)
}
