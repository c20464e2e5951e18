package verbstest

import "github.com/roced/roced/verbs"

// DestroyEventChannel is judged, as all commands are.
func (j judged) DestroyEventChannel(r verbs.DestroyEventChannelRequest) error {
	return j.judge("DestroyEventChannel", j.Provider.DestroyEventChannel(r))
}

func (j judged) CreateEventChannel() (verbs.CreateEventChannelGrant, error) {
	grant, err := j.Provider.CreateEventChannel()
	return grant, j.judge("CreateEventChannel", err)
}

func (j judged) GetCMEvent(r verbs.GetCMEventRequest) (verbs.GetCMEventGrant, error) {
	grant, err := j.Provider.GetCMEvent(r)
	return grant, j.judge("GetCMEvent", err)
}

func (j judged) CreateID(r verbs.CreateIDRequest) (verbs.CreateIDGrant, error) {
	grant, err := j.Provider.CreateID(r)
	return grant, j.judge("CreateID", err)
}

func (j judged) DestroyID(r verbs.DestroyIDRequest) error {
	return j.judge("DestroyID", j.Provider.DestroyID(r))
}

func (j judged) MigrateID(r verbs.MigrateIDRequest) error {
	return j.judge("MigrateID", j.Provider.MigrateID(r))
}

func (j judged) SetIDOption(r verbs.SetIDOptionRequest) error {
	return j.judge("SetIDOption", j.Provider.SetIDOption(r))
}

func (j judged) QueryID(r verbs.QueryIDRequest) (verbs.QueryIDGrant, error) {
	grant, err := j.Provider.QueryID(r)
	return grant, j.judge("QueryID", err)
}

func (j judged) BindID(r verbs.BindIDRequest) (verbs.BindIDGrant, error) {
	grant, err := j.Provider.BindID(r)
	return grant, j.judge("BindID", err)
}

func (j judged) FindRoute(r verbs.FindRouteRequest) (verbs.FindRouteGrant, error) {
	grant, err := j.Provider.FindRoute(r)
	return grant, j.judge("FindRoute", err)
}

func (j judged) ResolveIDAddr(r verbs.ResolveIDAddrRequest) error {
	return j.judge("ResolveIDAddr", j.Provider.ResolveIDAddr(r))
}

func (j judged) ResolveIDRoute(r verbs.ResolveIDRouteRequest) error {
	return j.judge("ResolveIDRoute", j.Provider.ResolveIDRoute(r))
}

func (j judged) InitIDQPAttr(r verbs.InitIDQPAttrRequest) (verbs.InitIDQPAttrGrant, error) {
	grant, err := j.Provider.InitIDQPAttr(r)
	return grant, j.judge("InitIDQPAttr", err)
}

func (j judged) ListenID(r verbs.ListenIDRequest) error {
	return j.judge("ListenID", j.Provider.ListenID(r))
}

func (j judged) ConnectID(r verbs.ConnectIDRequest) error {
	return j.judge("ConnectID", j.Provider.ConnectID(r))
}

func (j judged) AcceptID(r verbs.AcceptIDRequest) error {
	return j.judge("AcceptID", j.Provider.AcceptID(r))
}

func (j judged) RejectID(r verbs.RejectIDRequest) error {
	return j.judge("RejectID", j.Provider.RejectID(r))
}

func (j judged) DisconnectID(r verbs.DisconnectIDRequest) error {
	return j.judge("DisconnectID", j.Provider.DisconnectID(r))
}

func (j judged) NotifyID(r verbs.NotifyIDRequest) error {
	return j.judge("NotifyID", j.Provider.NotifyID(r))
}

func (j judged) JoinID(r verbs.JoinIDRequest) error {
	return j.judge("JoinID", j.Provider.JoinID(r))
}

func (j judged) LeaveID(r verbs.LeaveIDRequest) (verbs.LeaveIDGrant, error) {
	grant, err := j.Provider.LeaveID(r)
	return grant, j.judge("LeaveID", err)
}
