package verbstest

import (
	"net/netip"

	"github.com/roced/roced/verbs"
)

// idCommands are those of ids and their channels that take a handle, with one bad one each.
func idCommands(p verbs.Provider, good, bad handles) []command {
	all := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	return []command{
		{"DestroyEventChannel", func() error { return p.DestroyEventChannel(verbs.DestroyEventChannelRequest{Channel: bad.events}) }},
		{"GetCMEvent", func() error { _, err := p.GetCMEvent(verbs.GetCMEventRequest{Channel: bad.events}); return err }},
		{"CreateID", func() error {
			_, err := p.CreateID(verbs.CreateIDRequest{Channel: bad.events, PortSpace: verbs.PortSpaceUDP})
			return err
		}},
		{"MigrateID", func() error { return p.MigrateID(verbs.MigrateIDRequest{ID: bad.id, Channel: good.events}) }},
		{"MigrateID, channel", func() error { return p.MigrateID(verbs.MigrateIDRequest{ID: good.id, Channel: bad.events}) }},
		{"SetIDOption", func() error { return p.SetIDOption(verbs.SetIDOptionRequest{ID: bad.id}) }},
		{"QueryID", func() error { _, err := p.QueryID(verbs.QueryIDRequest{ID: bad.id}); return err }},
		{"DestroyID", func() error { return p.DestroyID(verbs.DestroyIDRequest{ID: bad.id}) }},
		{"BindID", func() error { _, err := p.BindID(verbs.BindIDRequest{ID: bad.id, Address: all}); return err }},
		{"ResolveIDAddr", func() error { return p.ResolveIDAddr(verbs.ResolveIDAddrRequest{ID: bad.id, Dest: all}) }},
		{"ResolveIDRoute", func() error { return p.ResolveIDRoute(verbs.ResolveIDRouteRequest{ID: bad.id}) }},
		{"InitIDQPAttr", func() error {
			_, err := p.InitIDQPAttr(verbs.InitIDQPAttrRequest{ID: bad.id, State: verbs.QPStateInit})
			return err
		}},
		{"ListenID", func() error { return p.ListenID(verbs.ListenIDRequest{ID: bad.id}) }},
		{"ConnectID", func() error { return p.ConnectID(verbs.ConnectIDRequest{ID: bad.id}) }},
		{"AcceptID", func() error { return p.AcceptID(verbs.AcceptIDRequest{ID: bad.id}) }},
		{"RejectID", func() error { return p.RejectID(verbs.RejectIDRequest{ID: bad.id}) }},
		{"DisconnectID", func() error { return p.DisconnectID(verbs.DisconnectIDRequest{ID: bad.id}) }},
		{"NotifyID", func() error { return p.NotifyID(verbs.NotifyIDRequest{ID: bad.id}) }},
		{"JoinID", func() error {
			return p.JoinID(verbs.JoinIDRequest{ID: bad.id, Group: groupV4, Flags: verbs.JoinFullMember})
		}},
		{"LeaveID", func() error { _, err := p.LeaveID(verbs.LeaveIDRequest{ID: bad.id, Group: groupV4}); return err }},
	}
}
