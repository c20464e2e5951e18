//go:build linux

package client

import (
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// ids are a client's connection ids and their event channels.
type ids struct{ *Client }

// DestroyEventChannel implements provider.Provider.
func (c ids) DestroyEventChannel(r provider.DestroyEventChannelRequest) error {
	return free(c.Client, proto.DestroyEventChannel, r)
}

// GetCMEvent implements provider.Provider.
func (c ids) GetCMEvent(r provider.GetCMEventRequest) (provider.GetCMEventGrant, error) {
	return ask(c.Client, proto.GetCMEvent, r)
}

// CreateID implements provider.Provider.
func (c ids) CreateID(r provider.CreateIDRequest) (provider.CreateIDGrant, error) {
	return ask(c.Client, proto.CreateID, r)
}

// DestroyID implements provider.Provider.
func (c ids) DestroyID(r provider.DestroyIDRequest) error { return free(c.Client, proto.DestroyID, r) }

// MigrateID implements provider.Provider.
func (c ids) MigrateID(r provider.MigrateIDRequest) error { return do(c.Client, proto.MigrateID, r) }

// SetIDOption implements provider.Provider.
func (c ids) SetIDOption(r provider.SetIDOptionRequest) error {
	return do(c.Client, proto.SetIDOption, r)
}

// QueryID implements provider.Provider.
func (c ids) QueryID(r provider.QueryIDRequest) (provider.QueryIDGrant, error) {
	return ask(c.Client, proto.QueryID, r)
}

// BindID implements provider.Provider.
func (c ids) BindID(r provider.BindIDRequest) (provider.BindIDGrant, error) {
	return ask(c.Client, proto.BindID, r)
}

// FindRoute implements provider.Provider.
func (c ids) FindRoute(r provider.FindRouteRequest) (provider.FindRouteGrant, error) {
	return ask(c.Client, proto.FindRoute, r)
}

// ResolveIDAddr implements provider.Provider.
func (c ids) ResolveIDAddr(r provider.ResolveIDAddrRequest) error {
	return do(c.Client, proto.ResolveIDAddr, r)
}

// SetIDPath implements provider.Provider.
func (c ids) SetIDPath(r provider.SetIDPathRequest) error { return do(c.Client, proto.SetIDPath, r) }

// ResolveIDRoute implements provider.Provider.
func (c ids) ResolveIDRoute(r provider.ResolveIDRouteRequest) error {
	return do(c.Client, proto.ResolveIDRoute, r)
}

// InitIDQPAttr implements provider.Provider.
func (c ids) InitIDQPAttr(r provider.InitIDQPAttrRequest) (provider.InitIDQPAttrGrant, error) {
	return ask(c.Client, proto.InitIDQPAttr, r)
}

// ListenID implements provider.Provider.
func (c ids) ListenID(r provider.ListenIDRequest) error { return do(c.Client, proto.ListenID, r) }

// ConnectID implements provider.Provider.
func (c ids) ConnectID(r provider.ConnectIDRequest) error { return do(c.Client, proto.ConnectID, r) }

// AcceptID implements provider.Provider.
func (c ids) AcceptID(r provider.AcceptIDRequest) error { return do(c.Client, proto.AcceptID, r) }

// RejectID implements provider.Provider.
func (c ids) RejectID(r provider.RejectIDRequest) error { return do(c.Client, proto.RejectID, r) }

// DisconnectID implements provider.Provider.
func (c ids) DisconnectID(r provider.DisconnectIDRequest) error {
	return do(c.Client, proto.DisconnectID, r)
}

// NotifyID implements provider.Provider.
func (c ids) NotifyID(r provider.NotifyIDRequest) error { return do(c.Client, proto.NotifyID, r) }

// JoinID implements provider.Provider.
func (c ids) JoinID(r provider.JoinIDRequest) error { return do(c.Client, proto.JoinID, r) }

// LeaveID implements provider.Provider.
func (c ids) LeaveID(r provider.LeaveIDRequest) (provider.LeaveIDGrant, error) {
	return ask(c.Client, proto.LeaveID, r)
}
