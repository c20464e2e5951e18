// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import "github.com/roced/roced/verbs/provider"

// Commands maps the commands on connection ids to the functions that carry them out.
var Commands = append(provider.Of(func(s *Session) *channels { return &s.channels },
	provider.Gives(provider.CreateEventChannel, (*channels).create),
	provider.Does(provider.DestroyEventChannel, (*channels).destroy),
	provider.Grants(provider.GetCMEvent, (*channels).next),
),
	provider.Grants(provider.CreateID, (*Session).CreateID),
	provider.Does(provider.MigrateID, (*Session).MigrateID),
	provider.Does(provider.SetIDOption, (*Session).SetIDOption),
	provider.Grants(provider.QueryID, (*Session).QueryID),
	provider.Does(provider.DestroyID, (*Session).DestroyID),
	provider.Grants(provider.BindID, (*Session).BindID),
	provider.Grants(provider.FindRoute, (*Session).FindRoute),
	provider.Does(provider.ResolveIDAddr, (*Session).ResolveIDAddr),
	provider.Does(provider.ResolveIDRoute, (*Session).ResolveIDRoute),
	provider.Does(provider.SetIDPath, (*Session).SetIDPath),
	provider.Grants(provider.InitIDQPAttr, (*Session).InitIDQPAttr),
	provider.Does(provider.ListenID, (*Session).ListenID),
	provider.Does(provider.ConnectID, (*Session).ConnectID),
	provider.Does(provider.AcceptID, (*Session).AcceptID),
	provider.Does(provider.RejectID, (*Session).RejectID),
	provider.Does(provider.DisconnectID, (*Session).DisconnectID),
	provider.Does(provider.NotifyID, (*Session).NotifyID),
	provider.Does(provider.JoinID, (*Session).JoinID),
	provider.Grants(provider.LeaveID, (*Session).LeaveID),
)
