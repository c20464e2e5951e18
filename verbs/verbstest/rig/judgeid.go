package rig

import (
	"github.com/roced/roced/verbs/provider"
)

// DestroyEventChannel is judged, as all commands are.
func (j judgedIDs) DestroyEventChannel(r provider.DestroyEventChannelRequest) error {
	return j.judge("DestroyEventChannel", j.Provider.DestroyEventChannel(r))
}

func (j judgedIDs) CreateEventChannel() (provider.CreateEventChannelGrant, error) {
	grant, err := j.Provider.CreateEventChannel()
	return grant, j.judge("CreateEventChannel", err)
}

func (j judgedIDs) GetCMEvent(r provider.GetCMEventRequest) (provider.GetCMEventGrant, error) {
	grant, err := j.Provider.GetCMEvent(r)
	return grant, j.judge("GetCMEvent", err)
}

func (j judgedIDs) CreateID(r provider.CreateIDRequest) (provider.CreateIDGrant, error) {
	grant, err := j.Provider.CreateID(r)
	return grant, j.judge("CreateID", err)
}

func (j judgedIDs) DestroyID(r provider.DestroyIDRequest) error {
	return j.judge("DestroyID", j.Provider.DestroyID(r))
}

func (j judgedIDs) MigrateID(r provider.MigrateIDRequest) error {
	return j.judge("MigrateID", j.Provider.MigrateID(r))
}

func (j judgedIDs) SetIDOption(r provider.SetIDOptionRequest) error {
	return j.judge("SetIDOption", j.Provider.SetIDOption(r))
}

func (j judgedIDs) QueryID(r provider.QueryIDRequest) (provider.QueryIDGrant, error) {
	grant, err := j.Provider.QueryID(r)
	return grant, j.judge("QueryID", err)
}

func (j judgedIDs) BindID(r provider.BindIDRequest) (provider.BindIDGrant, error) {
	grant, err := j.Provider.BindID(r)
	return grant, j.judge("BindID", err)
}

func (j judgedIDs) FindRoute(r provider.FindRouteRequest) (provider.FindRouteGrant, error) {
	grant, err := j.Provider.FindRoute(r)
	return grant, j.judge("FindRoute", err)
}

func (j judgedIDs) ResolveIDAddr(r provider.ResolveIDAddrRequest) error {
	return j.judge("ResolveIDAddr", j.Provider.ResolveIDAddr(r))
}

func (j judgedIDs) SetIDPath(r provider.SetIDPathRequest) error {
	return j.judge("SetIDPath", j.Provider.SetIDPath(r))
}

func (j judgedIDs) ResolveIDRoute(r provider.ResolveIDRouteRequest) error {
	return j.judge("ResolveIDRoute", j.Provider.ResolveIDRoute(r))
}

func (j judgedIDs) InitIDQPAttr(r provider.InitIDQPAttrRequest) (provider.InitIDQPAttrGrant, error) {
	grant, err := j.Provider.InitIDQPAttr(r)
	return grant, j.judge("InitIDQPAttr", err)
}

func (j judgedIDs) ListenID(r provider.ListenIDRequest) error {
	return j.judge("ListenID", j.Provider.ListenID(r))
}

func (j judgedIDs) ConnectID(r provider.ConnectIDRequest) error {
	return j.judge("ConnectID", j.Provider.ConnectID(r))
}

func (j judgedIDs) AcceptID(r provider.AcceptIDRequest) error {
	return j.judge("AcceptID", j.Provider.AcceptID(r))
}

func (j judgedIDs) RejectID(r provider.RejectIDRequest) error {
	return j.judge("RejectID", j.Provider.RejectID(r))
}

func (j judgedIDs) DisconnectID(r provider.DisconnectIDRequest) error {
	return j.judge("DisconnectID", j.Provider.DisconnectID(r))
}

func (j judgedIDs) NotifyID(r provider.NotifyIDRequest) error {
	return j.judge("NotifyID", j.Provider.NotifyID(r))
}

func (j judgedIDs) JoinID(r provider.JoinIDRequest) error {
	return j.judge("JoinID", j.Provider.JoinID(r))
}

func (j judgedIDs) LeaveID(r provider.LeaveIDRequest) (provider.LeaveIDGrant, error) {
	grant, err := j.Provider.LeaveID(r)
	return grant, j.judge("LeaveID", err)
}
