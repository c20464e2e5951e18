// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// idCommands returns the commands of connection ids and event channels that have a handle. Each command has one invalid
// handle.
func idCommands(p provider.Provider, good, bad handles) []command {
	all := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	return []command{
		{"DestroyEventChannel", func() error {
			return provider.Exec(p, provider.DestroyEventChannel, provider.DestroyEventChannelRequest{Channel: bad.events})
		}},
		{"GetCMEvent", func() error {
			_, err := provider.Do(p, provider.GetCMEvent, provider.GetCMEventRequest{Channel: bad.events})
			return err
		}},
		{"CreateID", func() error {
			_, err := provider.Do(p, provider.CreateID, provider.CreateIDRequest{Channel: bad.events, PortSpace: wire.PortSpaceUDP})
			return err
		}},
		{"MigrateID", func() error {
			return provider.Exec(p, provider.MigrateID, provider.MigrateIDRequest{ID: bad.id, Channel: good.events})
		}},
		{"MigrateID, channel", func() error {
			return provider.Exec(p, provider.MigrateID, provider.MigrateIDRequest{ID: good.id, Channel: bad.events})
		}},
		{"SetIDOption", func() error { return provider.Exec(p, provider.SetIDOption, provider.SetIDOptionRequest{ID: bad.id}) }},
		{"QueryID", func() error {
			_, err := provider.Do(p, provider.QueryID, provider.QueryIDRequest{ID: bad.id})
			return err
		}},
		{"DestroyID", func() error { return provider.Exec(p, provider.DestroyID, provider.DestroyIDRequest{ID: bad.id}) }},
		{"BindID", func() error {
			_, err := provider.Do(p, provider.BindID, provider.BindIDRequest{ID: bad.id, Address: all})
			return err
		}},
		{"ResolveIDAddr", func() error {
			return provider.Exec(p, provider.ResolveIDAddr, provider.ResolveIDAddrRequest{ID: bad.id, Dest: all})
		}},
		{"ResolveIDRoute", func() error {
			return provider.Exec(p, provider.ResolveIDRoute, provider.ResolveIDRouteRequest{ID: bad.id})
		}},
		{"SetIDPath", func() error { return provider.Exec(p, provider.SetIDPath, provider.SetIDPathRequest{ID: bad.id}) }},
		{"InitIDQPAttr", func() error {
			_, err := provider.Do(p, provider.InitIDQPAttr, provider.InitIDQPAttrRequest{ID: bad.id, State: verbs.QPStateInit})
			return err
		}},
		{"ListenID", func() error { return provider.Exec(p, provider.ListenID, provider.ListenIDRequest{ID: bad.id}) }},
		{"ConnectID", func() error { return provider.Exec(p, provider.ConnectID, provider.ConnectIDRequest{ID: bad.id}) }},
		{"AcceptID", func() error { return provider.Exec(p, provider.AcceptID, provider.AcceptIDRequest{ID: bad.id}) }},
		{"RejectID", func() error { return provider.Exec(p, provider.RejectID, provider.RejectIDRequest{ID: bad.id}) }},
		{"DisconnectID", func() error { return provider.Exec(p, provider.DisconnectID, provider.DisconnectIDRequest{ID: bad.id}) }},
		{"NotifyID", func() error { return provider.Exec(p, provider.NotifyID, provider.NotifyIDRequest{ID: bad.id}) }},
		{"JoinID", func() error {
			return provider.Exec(p, provider.JoinID, provider.JoinIDRequest{ID: bad.id, Group: rig.GroupV4, State: ib.JoinStateFullMember})
		}},
		{"LeaveID", func() error {
			_, err := provider.Do(p, provider.LeaveID, provider.LeaveIDRequest{ID: bad.id, Group: rig.GroupV4})
			return err
		}},
	}
}
