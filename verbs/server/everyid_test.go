// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// wholeIDs are a client's ids, one in each state that a command needs.
type wholeIDs struct {
	events, otherEvents             provider.Handle // channels
	idle, bound, resolved, routed   provider.Handle
	listening, asked                provider.Handle
	joined, resolving, toBeMigrated provider.Handle
}

var idGroup = netip.MustParseAddr("239.1.2.5")

func (r *raw) ids(t testing.TB) (w wholeIDs) {
	t.Helper()
	for _, channel := range []*provider.Handle{&w.events, &w.otherEvents} {
		grant, ends := ask(r, proto.CreateEventChannel, &proto.None{})
		t.Cleanup(func() { proto.CloseAll(ends) })
		*channel = grant.Channel
	}
	for _, id := range []*provider.Handle{&w.idle, &w.bound, &w.resolved, &w.routed, &w.listening, &w.joined, &w.resolving, &w.toBeMigrated} {
		grant, _ := ask(r, proto.CreateID, &provider.CreateIDRequest{Channel: w.events, PortSpace: wire.PortSpaceUDP})
		*id = grant.ID
	}
	for _, id := range []provider.Handle{w.bound, w.listening, w.joined} {
		ask(r, proto.BindID, &provider.BindIDRequest{ID: id, Address: netip.AddrPortFrom(addressesA[0], 0)})
	}
	ask(r, proto.ListenID, &provider.ListenIDRequest{ID: w.listening})
	ask(r, proto.JoinID, &provider.JoinIDRequest{ID: w.joined, Group: idGroup, State: ib.JoinStateFullMember})
	r.event(w.events, ib.CMEventMulticastJoin)
	at, _ := ask(r, proto.QueryID, &provider.QueryIDRequest{ID: w.listening})
	client, _ := ask(r, proto.CreateID, &provider.CreateIDRequest{Channel: w.events, PortSpace: wire.PortSpaceUDP})
	for _, id := range []provider.Handle{w.resolved, w.routed, client.ID} {
		ask(r, proto.ResolveIDAddr, &provider.ResolveIDAddrRequest{ID: id, Dest: at.Local, Timeout: time.Minute})
		r.event(w.events, ib.CMEventAddrResolved)
	}
	for _, id := range []provider.Handle{w.routed, client.ID} {
		ask(r, proto.ResolveIDRoute, &provider.ResolveIDRouteRequest{ID: id})
		r.event(w.events, ib.CMEventRouteResolved)
	}
	ask(r, proto.ConnectID, &provider.ConnectIDRequest{ID: client.ID})
	w.asked = r.event(w.events, ib.CMEventConnectRequest).ID
	return w
}

// event waits for an event.
func (r *raw) event(channel provider.Handle, want ib.CMEventType) (e provider.CMEvent) {
	r.Helper()
	eventually(r, want.String(), func() bool {
		grant, _ := ask(r, proto.GetCMEvent, &provider.GetCMEventRequest{Channel: channel})
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
	put(p, t, proto.GetCMEvent, &provider.GetCMEventRequest{Channel: w.events})
	put(p, t, proto.CreateID, &provider.CreateIDRequest{Channel: w.events, PortSpace: wire.PortSpaceTCP})
	put(p, t, proto.DestroyID, &provider.DestroyIDRequest{ID: w.asked})
	put(p, t, proto.MigrateID, &provider.MigrateIDRequest{ID: w.toBeMigrated, Channel: w.otherEvents})
	put(p, t, proto.SetIDOption, &provider.SetIDOptionRequest{ID: w.idle, Option: ib.IDOptionReuseAddr, Value: 1})
	put(p, t, proto.QueryID, &provider.QueryIDRequest{ID: w.resolved})
	put(p, t, proto.BindID, &provider.BindIDRequest{ID: w.idle, Address: netip.MustParseAddrPort("0.0.0.0:0")})
	put(p, t, proto.FindRoute, &provider.FindRouteRequest{Dest: dest.Addr()})
	put(p, t, proto.ResolveIDAddr, &provider.ResolveIDAddrRequest{ID: w.resolving, Dest: dest, Timeout: time.Minute})
	put(p, t, proto.ResolveIDRoute, &provider.ResolveIDRouteRequest{ID: w.resolved})
	put(p, t, proto.SetIDPath, &provider.SetIDPathRequest{ID: w.resolved, Path: verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GIDFromAddr(addressesA[0])}}})
	put(p, t, proto.InitIDQPAttr, &provider.InitIDQPAttrRequest{ID: w.bound, State: verbs.QPStateInit})
	put(p, t, proto.ListenID, &provider.ListenIDRequest{ID: w.bound})
	put(p, t, proto.ConnectID, &provider.ConnectIDRequest{ID: w.routed})
	put(p, t, proto.AcceptID, &provider.AcceptIDRequest{ID: w.asked, Param: ib.ConnParam{QPN: 17}})
	put(p, t, proto.RejectID, &provider.RejectIDRequest{ID: w.asked, PrivateData: []byte("no")})
	put(p, t, proto.DisconnectID, &provider.DisconnectIDRequest{ID: w.asked})
	put(p, t, proto.JoinID, &provider.JoinIDRequest{ID: w.bound, Group: idGroup, State: ib.JoinStateFullMember})
	put(p, t, proto.LeaveID, &provider.LeaveIDRequest{ID: w.joined, Group: idGroup})
	// These are refused: there are ids in the channel, and no connections.
	put(p, t, proto.DestroyEventChannel, &provider.DestroyEventChannelRequest{Channel: w.events})
	put(p, t, proto.NotifyID, &provider.NotifyIDRequest{ID: w.asked, Event: verbs.EventCommEst})
}
