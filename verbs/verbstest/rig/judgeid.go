package rig

import (
	"github.com/roced/roced/verbs/provider"
)

// DestroyEventChannel is judged, as all commands are.
func (j judged) DestroyEventChannel(r provider.DestroyEventChannelRequest) error {
	return j.judge("DestroyEventChannel", j.Provider.DestroyEventChannel(r))
}

func (j judged) CreateEventChannel() (provider.CreateEventChannelGrant, error) {
	grant, err := j.Provider.CreateEventChannel()
	return grant, j.judge("CreateEventChannel", err)
}

func (j judged) GetCMEvent(r provider.GetCMEventRequest) (provider.GetCMEventGrant, error) {
	grant, err := j.Provider.GetCMEvent(r)
	return grant, j.judge("GetCMEvent", err)
}

func (j judged) CreateID(r provider.CreateIDRequest) (provider.CreateIDGrant, error) {
	grant, err := j.Provider.CreateID(r)
	return grant, j.judge("CreateID", err)
}

func (j judged) DestroyID(r provider.DestroyIDRequest) error {
	return j.judge("DestroyID", j.Provider.DestroyID(r))
}

func (j judged) MigrateID(r provider.MigrateIDRequest) error {
	return j.judge("MigrateID", j.Provider.MigrateID(r))
}

func (j judged) SetIDOption(r provider.SetIDOptionRequest) error {
	return j.judge("SetIDOption", j.Provider.SetIDOption(r))
}

func (j judged) QueryID(r provider.QueryIDRequest) (provider.QueryIDGrant, error) {
	grant, err := j.Provider.QueryID(r)
	return grant, j.judge("QueryID", err)
}

func (j judged) BindID(r provider.BindIDRequest) (provider.BindIDGrant, error) {
	grant, err := j.Provider.BindID(r)
	return grant, j.judge("BindID", err)
}

func (j judged) FindRoute(r provider.FindRouteRequest) (provider.FindRouteGrant, error) {
	grant, err := j.Provider.FindRoute(r)
	return grant, j.judge("FindRoute", err)
}

func (j judged) ResolveIDAddr(r provider.ResolveIDAddrRequest) error {
	return j.judge("ResolveIDAddr", j.Provider.ResolveIDAddr(r))
}

func (j judged) SetIDPath(r provider.SetIDPathRequest) error {
	return j.judge("SetIDPath", j.Provider.SetIDPath(r))
}

func (j judged) ResolveIDRoute(r provider.ResolveIDRouteRequest) error {
	return j.judge("ResolveIDRoute", j.Provider.ResolveIDRoute(r))
}

func (j judged) InitIDQPAttr(r provider.InitIDQPAttrRequest) (provider.InitIDQPAttrGrant, error) {
	grant, err := j.Provider.InitIDQPAttr(r)
	return grant, j.judge("InitIDQPAttr", err)
}

func (j judged) ListenID(r provider.ListenIDRequest) error {
	return j.judge("ListenID", j.Provider.ListenID(r))
}

func (j judged) ConnectID(r provider.ConnectIDRequest) error {
	return j.judge("ConnectID", j.Provider.ConnectID(r))
}

func (j judged) AcceptID(r provider.AcceptIDRequest) error {
	return j.judge("AcceptID", j.Provider.AcceptID(r))
}

func (j judged) RejectID(r provider.RejectIDRequest) error {
	return j.judge("RejectID", j.Provider.RejectID(r))
}

func (j judged) DisconnectID(r provider.DisconnectIDRequest) error {
	return j.judge("DisconnectID", j.Provider.DisconnectID(r))
}

func (j judged) NotifyID(r provider.NotifyIDRequest) error {
	return j.judge("NotifyID", j.Provider.NotifyID(r))
}

func (j judged) JoinID(r provider.JoinIDRequest) error {
	return j.judge("JoinID", j.Provider.JoinID(r))
}

func (j judged) LeaveID(r provider.LeaveIDRequest) (provider.LeaveIDGrant, error) {
	grant, err := j.Provider.LeaveID(r)
	return grant, j.judge("LeaveID", err)
}
