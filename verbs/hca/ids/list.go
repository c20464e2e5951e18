//go:build linux

package ids

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Info is a connection id, for those who look.
type Info struct {
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

// List lists ids, at most so many, from a place on; next is where to go on, if there is more.
func (s *Session) List(from uint32, most int) (list []Info, next uint32, more bool, err error) {
	if err := s.enter(); err != nil {
		return nil, from, false, err
	}
	defer s.mu.Unlock()
	for next = from; next < s.ids.Places(); next++ {
		i := s.ids.At(next)
		if i == nil {
			continue
		}
		if len(list) == most {
			return list, next, true, nil
		}
		list = append(list, Info{
			Handle: i.handle, PortSpace: i.space, Type: i.kind, State: stateNames[i.state], Local: i.source, Remote: i.dest,
			Events: uint32(i.events.Len()), Groups: uint32(len(i.joins)),
		})
	}
	return list, next, false, nil
}
