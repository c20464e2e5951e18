package server

import (
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// wholeIDs are a client's ids, one in each state that a command needs.
type wholeIDs struct {
	events, otherEvents             verbs.Handle // channels
	idle, bound, resolved, routed   verbs.Handle
	listening, asked                verbs.Handle
	joined, resolving, toBeMigrated verbs.Handle
}

var idGroup = netip.MustParseAddr("239.1.2.5")

func (r *raw) ids(t testing.TB) (w wholeIDs) {
	t.Helper()
	for _, channel := range []*verbs.Handle{&w.events, &w.otherEvents} {
		grant, ends := ask(r, proto.CreateEventChannel, &proto.None{})
		t.Cleanup(func() { proto.CloseAll(ends) })
		*channel = grant.Channel
	}
	for _, id := range []*verbs.Handle{&w.idle, &w.bound, &w.resolved, &w.routed, &w.listening, &w.joined, &w.resolving, &w.toBeMigrated} {
		grant, _ := ask(r, proto.CreateID, &verbs.CreateIDRequest{Channel: w.events, PortSpace: verbs.PortSpaceUDP})
		*id = grant.ID
	}
	for _, id := range []verbs.Handle{w.bound, w.listening, w.joined} {
		ask(r, proto.BindID, &verbs.BindIDRequest{ID: id, Address: netip.AddrPortFrom(addressesA[0], 0)})
	}
	ask(r, proto.ListenID, &verbs.ListenIDRequest{ID: w.listening})
	ask(r, proto.JoinID, &verbs.JoinIDRequest{ID: w.joined, Group: idGroup, Flags: verbs.JoinFullMember})
	r.event(w.events, verbs.CMEventMulticastJoin)
	at, _ := ask(r, proto.QueryID, &verbs.QueryIDRequest{ID: w.listening})
	client, _ := ask(r, proto.CreateID, &verbs.CreateIDRequest{Channel: w.events, PortSpace: verbs.PortSpaceUDP})
	for _, id := range []verbs.Handle{w.resolved, w.routed, client.ID} {
		ask(r, proto.ResolveIDAddr, &verbs.ResolveIDAddrRequest{ID: id, Dest: at.Local, Timeout: time.Minute})
		r.event(w.events, verbs.CMEventAddrResolved)
	}
	for _, id := range []verbs.Handle{w.routed, client.ID} {
		ask(r, proto.ResolveIDRoute, &verbs.ResolveIDRouteRequest{ID: id})
		r.event(w.events, verbs.CMEventRouteResolved)
	}
	ask(r, proto.ConnectID, &verbs.ConnectIDRequest{ID: client.ID})
	w.asked = r.event(w.events, verbs.CMEventConnectRequest).ID
	return w
}

// event waits for an event.
func (r *raw) event(channel verbs.Handle, want verbs.CMEventType) (e verbs.CMEvent) {
	r.Helper()
	eventually(r, want.String(), func() bool {
		grant, _ := ask(r, proto.GetCMEvent, &verbs.GetCMEventRequest{Channel: channel})
		e = grant.Event
		return grant.Found
	})
	if e.Type != want {
		r.Fatalf("%v, want %v", e.Type, want)
	}
	return e
}

func (w *whole) idPackets(p packets) {
	t, dest := w.TB, netip.AddrPortFrom(addressesB[0], 1)
	put(p, t, proto.CreateEventChannel, &proto.None{})
	put(p, t, proto.GetCMEvent, &verbs.GetCMEventRequest{Channel: w.events})
	put(p, t, proto.CreateID, &verbs.CreateIDRequest{Channel: w.events, PortSpace: verbs.PortSpaceTCP})
	put(p, t, proto.DestroyID, &verbs.DestroyIDRequest{ID: w.asked})
	put(p, t, proto.MigrateID, &verbs.MigrateIDRequest{ID: w.toBeMigrated, Channel: w.otherEvents})
	put(p, t, proto.SetIDOption, &verbs.SetIDOptionRequest{ID: w.idle, Option: verbs.IDOptionReuseAddr, Value: 1})
	put(p, t, proto.QueryID, &verbs.QueryIDRequest{ID: w.resolved})
	put(p, t, proto.BindID, &verbs.BindIDRequest{ID: w.idle, Address: netip.MustParseAddrPort("0.0.0.0:0")})
	put(p, t, proto.FindRoute, &verbs.FindRouteRequest{Dest: dest.Addr()})
	put(p, t, proto.ResolveIDAddr, &verbs.ResolveIDAddrRequest{ID: w.resolving, Dest: dest, Timeout: time.Minute})
	put(p, t, proto.ResolveIDRoute, &verbs.ResolveIDRouteRequest{ID: w.resolved})
	put(p, t, proto.InitIDQPAttr, &verbs.InitIDQPAttrRequest{ID: w.bound, State: verbs.QPStateInit})
	put(p, t, proto.ListenID, &verbs.ListenIDRequest{ID: w.bound})
	put(p, t, proto.ConnectID, &verbs.ConnectIDRequest{ID: w.routed})
	put(p, t, proto.AcceptID, &verbs.AcceptIDRequest{ID: w.asked, Param: verbs.ConnParam{QPN: 17}})
	put(p, t, proto.RejectID, &verbs.RejectIDRequest{ID: w.asked, PrivateData: []byte("no")})
	put(p, t, proto.DisconnectID, &verbs.DisconnectIDRequest{ID: w.asked})
	put(p, t, proto.JoinID, &verbs.JoinIDRequest{ID: w.bound, Group: idGroup, Flags: verbs.JoinFullMember})
	put(p, t, proto.LeaveID, &verbs.LeaveIDRequest{ID: w.joined, Group: idGroup})
	// These are refused: there are ids in the channel, and no connections.
	put(p, t, proto.DestroyEventChannel, &verbs.DestroyEventChannelRequest{Channel: w.events})
	put(p, t, proto.NotifyID, &verbs.NotifyIDRequest{ID: w.asked, Event: verbs.EventCommEst})
}
