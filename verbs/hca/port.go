//go:build linux

package hca

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/provider"
)

// portChange is what has changed at the port since the last look.
type portChange struct {
	up        bool                  // the link came up
	gids      map[wire.GID]struct{} // added or removed
	unsteered error                 // addresses that XDP cannot take; they are not in the GID table
}

// updatePort reads link state, MTU, MAC and addresses. If the MTU is too small for any RDMA MTU, the
// port is down. XDP steers an address before it is in the GID table, and until it is removed there.
func (card *Card) updatePort() (c portChange, err error) {
	card.asking.Lock()
	defer card.asking.Unlock()
	if ended := card.life.err(); ended != nil {
		return c, ended
	}
	status, err := card.host.Port()
	if err != nil {
		return c, err
	}
	was := card.port()
	added, removed := was.gids.changes(status.Addresses)
	added, c.unsteered = card.steered(added)
	c.unsteered = errors.Join(c.unsteered, card.steerPort(was.Port, status))
	if err := card.movePort(status, added, removed, &c); err != nil {
		return c, err
	}
	for _, gid := range removed {
		c.unsteered = errors.Join(c.unsteered, card.host.RemoveAddress(gid.Addr()))
	}
	return c, nil
}

// portState is the port as of a look. It does not change any more once it is the card's: the next look makes another.
type portState struct {
	network.Port
	rdma  wire.MTU // the active MTU
	asked wire.MTU // from WithMTU; 0 for the largest that fits
	gids  gidTable
}

// port is the port as of the last look.
func (card *Card) port() *portState { return card.state.Load() }

// next is the port as it is found now. Too small an MTU for any RDMA MTU leaves the active one as it was.
func (p *portState) next(found network.Port, added, removed []wire.GID) (next *portState, tooSmall error) {
	next = &portState{Port: found, rdma: p.rdma, asked: p.asked, gids: p.gids.clone()}
	mtu, tooSmall := found.RDMAMTU()
	if tooSmall == nil {
		next.rdma = min(mtu, cmp.Or(p.asked, mtu))
	}
	next.Up = found.Up && tooSmall == nil && found.Lost == nil
	next.gids.apply(added, removed)
	return next, tooSmall
}

// steered has XDP redirect packets to these addresses, and gives those for which that worked.
func (card *Card) steered(gids []wire.GID) (done []wire.GID, failed error) {
	refused := 0
	for _, gid := range gids {
		if err := card.host.AddAddress(gid.Addr()); err != nil {
			refused, failed = refused+1, err
			continue
		}
		done = append(done, gid)
	}
	if failed != nil {
		failed = fmt.Errorf("%d addresses of %s are not in the GID table: %w", refused, card.Name(), failed)
	}
	return done, failed
}

// movePort sets the card's state to what was found.
func (card *Card) movePort(status network.Port, added, removed []wire.GID, c *portChange) error {
	card.mu.Lock()
	defer card.mu.Unlock()
	if ended := card.life.err(); ended != nil {
		return ended
	}
	card.rename(status.Name)
	was := card.port()
	now, tooSmall := was.next(status, added, removed)
	card.state.Store(now)
	c.up = now.Up && !was.Up
	c.gids = map[wire.GID]struct{}{}
	for _, gid := range slices.Concat(added, removed) {
		c.gids[gid] = struct{}{}
	}
	card.engine.Do(func() {
		card.engine.SetLink(now.Up)
		card.engine.SetMTU(now.rdma)
		card.engine.SetAddresses(now.gids.all())
		card.setPort(status)
	})
	card.paths.SetPort(status.MAC, now.gids.all())
	card.report(was, now, len(c.gids) > 0, tooSmall)
	return nil
}

// rename follows the interface's name.
func (card *Card) rename(now string) {
	if was := card.Name(); was != now {
		card.name.Store(&now)
		card.log.Info("the interface has another name", "was", was, "device", now)
	}
}

func (card *Card) logTrains(now *portState) {
	log := card.log.With("device", card.Name(), "in_trains", now.Trains)
	if now.NoTrains != "" {
		log = log.With("because", now.NoTrains)
	}
	log.Info("bursts leave the interface")
}

// report logs changes since the last look, and makes events of them.
func (card *Card) report(was, now *portState, gids bool, tooSmall error) {
	if was.MTU == 0 || was.Trains != now.Trains {
		card.logTrains(now)
	}
	if was.MTU == 0 {
		return // the first look
	}
	if was.Up != now.Up {
		card.log.Warn("port changed", "device", card.Name(), "up", now.Up)
	}
	if was.MTU != now.MTU {
		card.log.Info("interface MTU changed", "device", card.Name(), "bytes", now.MTU, "rdma_mtu", now.rdma, "rdma_mtu_limit", now.largestMTU())
		if tooSmall != nil {
			card.log.Error("port is down", "device", card.Name(), "error", tooSmall)
		}
	}
	if now.Lost != nil && was.Lost == nil {
		card.log.Error("port is down", "device", card.Name(), "error", now.Lost)
	}
	if now.Stuck != nil && now.Stuck != was.Stuck {
		card.log.Error("the RDMA MTU does not follow the interface's; set that again when the cause is gone, or close the device and open it again", "device", card.Name(), "error", now.Stuck)
	}
	switch {
	case now.Up && !was.Up:
		card.tell(provider.EventReport{Type: verbs.EventPortActive, Port: 1})
	case was.Up && !now.Up:
		card.tell(provider.EventReport{Type: verbs.EventPortErr, Port: 1})
	}
	if was.rdma != now.rdma || now.Stuck != nil && now.Stuck != was.Stuck {
		card.tell(provider.EventReport{Type: verbs.EventMTUChange, Port: 1})
	}
	if gids {
		card.tell(provider.EventReport{Type: verbs.EventGIDChange, Port: 1})
	}
}

// largestMTU is the largest RDMA MTU that the port can have.
func (p *portState) largestMTU() wire.MTU {
	most := p.Most
	if p.Stuck != nil {
		most = p.Carried
	}
	return min(most, cmp.Or(p.asked, most))
}

// steerPort gives the port's MACs and its subnets' broadcast addresses to the steering.
func (card *Card) steerPort(was, now network.Port) error {
	macs := make([][6]byte, len(now.MACs))
	for i, mac := range now.MACs {
		macs[i] = mac
	}
	err := card.host.SetMACs(macs...)
	for _, address := range now.Broadcasts {
		err = errors.Join(err, card.host.AddBroadcast(address))
	}
	for _, address := range was.Broadcasts {
		if !slices.Contains(now.Broadcasts, address) {
			err = errors.Join(err, card.host.RemoveBroadcast(address))
		}
	}
	return err
}

// setPort is steerPort for the engine, in Do.
func (card *Card) setPort(now network.Port) {
	card.engine.SetMACs(now.MACs...)
	broadcasts := make([]wire.GID, len(now.Broadcasts))
	for i, address := range now.Broadcasts {
		broadcasts[i] = wire.GIDFromAddr(address)
	}
	card.engine.SetBroadcasts(broadcasts)
}
