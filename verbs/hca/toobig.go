//go:build linux

package hca

import (
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
)

// tooBig counts routers' reports of packets that they could not forward. The card does not act on
// them, since anybody can forge them. It logs them, since nothing else shows that packets are lost at
// a router. The administrator can give the route an MTU (ip route … mtu), which the card follows.
type tooBig struct {
	packets atomic.Uint64
	logged  time.Time
}

// logPause is the shortest time between two log lines about packets that are too big.
const logPause = time.Minute

// noteTooBig is called by the listener, for all packets of the host to the RoCEv2 port.
func (card *Card) noteTooBig(said host.TooBig) {
	if _, err := card.gidIndex(wire.GIDFromAddr(said.Source)); err != nil {
		return // another interface's
	}
	card.tooBig.packets.Add(1)
	if now := time.Now(); now.Sub(card.tooBig.logged) > logPause {
		card.tooBig.logged = now
		card.log.Warn("a router cannot forward packets of this size: send less, or tell the route (ip route change … mtu)",
			"device", card.Name(), "destination", said.Dest, "mtu", said.MTU, "rdma_mtu", wire.MTUFor(said.MTU))
	}
}
