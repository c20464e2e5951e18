//go:build linux

package hca

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// IDInfo is a connection id, for those who look.
type IDInfo struct {
	Handle        provider.Handle
	PortSpace     wire.PortSpace
	Type          verbs.QPType
	State         string         // as rdma(8) names it
	Local, Remote netip.AddrPort // zero as long as there is none
	Events        uint32         // that wait
	Groups        uint32         // that it has joined
}

// stateNames are rdma(8)'s.
var stateNames = [...]string{
	idIdle: "IDLE", idBound: "ADDR_BOUND", idResolving: "ADDR_QUERY", idAddrResolved: "ADDR_RESOLVED",
	idRouteResolved: "ROUTE_RESOLVED", idConnecting: "CONNECT", idListening: "LISTEN", idDestroyed: "DESTROYING",
}

// IDs lists ids, at most so many, from a place on, as Objects does.
func (s *Session) IDs(from Cursor, most int) (list []IDInfo, next Cursor, more bool, err error) {
	if err := s.enter(); err != nil {
		return nil, from, false, err
	}
	defer s.card.mu.Unlock()
	for next = from; int(next.Place) < len(s.ids.objects); next.Place++ {
		i := s.ids.objects[next.Place]
		if i == nil {
			continue
		}
		if len(list) == most {
			return list, next, true, nil
		}
		list = append(list, IDInfo{
			Handle: i.handle, PortSpace: i.space, Type: i.kind, State: stateNames[i.state], Local: i.source, Remote: i.dest,
			Events: uint32(i.events.Len()), Groups: uint32(len(i.joins)),
		})
	}
	return list, next, false, nil
}
