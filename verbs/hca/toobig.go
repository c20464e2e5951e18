package hca

import (
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
)

// tooBig counts what routers say of packets that they could not forward. It is not acted on:
// anybody could say so. It is logged, since nobody else would ever tell of packets that are lost
// far away: a route with an MTU (ip route … mtu) is followed.
type tooBig struct {
	packets atomic.Uint64
	logged  time.Time
}

// logPause is between two lines of the log about packets that are too big.
const logPause = time.Minute

// noteTooBig is called by the listener, for all packets of the host to the RoCEv2 port.
func (card *Card) noteTooBig(said host.TooBig) {
	if source, _ := card.hasGIDs(pair{source: wire.GIDFromAddr(said.Source)}); !source {
		return // another device's
	}
	card.tooBig.packets.Add(1)
	if now := time.Now(); now.Sub(card.tooBig.logged) > logPause {
		card.tooBig.logged = now
		card.log.Warn("a router cannot forward packets of this size: send less, or tell the route (ip route change … mtu)",
			"device", card.name, "destination", said.Dest, "mtu", said.MTU, "rdma_mtu", wire.MTUFor(said.MTU))
	}
}
