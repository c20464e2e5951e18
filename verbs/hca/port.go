//go:build linux

package hca

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
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
	status, err := card.host.port()
	if err != nil {
		return c, err
	}
	card.fitSockets(&status)
	added, removed := card.gidChanges(status.addresses)
	added, c.unsteered = card.steered(added)
	was := card.portStatus()
	c.unsteered = errors.Join(c.unsteered, card.steerPort(was, status))
	if err := card.movePort(status, added, removed, &c); err != nil {
		return c, err
	}
	for _, gid := range removed {
		c.unsteered = errors.Join(c.unsteered, card.steering.RemoveAddress(gid.Addr()))
	}
	return c, nil
}

func (card *Card) portStatus() portStatus {
	card.mu.Lock()
	defer card.mu.Unlock()
	return card.status
}

func (card *Card) gidChanges(addresses []netip.Addr) (added, removed []wire.GID) {
	card.mu.Lock()
	defer card.mu.Unlock()
	return card.gids.changes(addresses)
}

// steered has XDP redirect packets to these addresses, and gives those for which that worked.
func (card *Card) steered(gids []wire.GID) (done []wire.GID, failed error) {
	refused := 0
	for _, gid := range gids {
		if err := card.steering.AddAddress(gid.Addr()); err != nil {
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
func (card *Card) movePort(status portStatus, added, removed []wire.GID, c *portChange) error {
	card.mu.Lock()
	defer card.mu.Unlock()
	if ended := card.ended(); ended != nil {
		return ended
	}
	card.rename(status.name)
	was := card.portNow()
	mtu, tooSmall := fittingMTU(card.Name(), status.mtu, card.carried)
	if tooSmall == nil {
		card.activeMTU = mtu
		if card.askedMTU != 0 {
			card.activeMTU = min(mtu, card.askedMTU)
		}
	}
	status.up = status.up && tooSmall == nil && status.lost == nil
	card.status = status
	card.gids.apply(added, removed)
	c.up = status.up && !was.up
	c.gids = map[wire.GID]struct{}{}
	for _, gid := range slices.Concat(added, removed) {
		c.gids[gid] = struct{}{}
	}
	card.engine.Do(func() {
		card.engine.SetLink(status.up)
		card.engine.SetMTU(card.activeMTU)
		card.engine.SetAddresses(card.gids.all())
		card.setPort(status)
		if xdp, ok := card.link.(*link.XDP); ok {
			xdp.SetTrains(status.trains)
		}
	})
	card.paths.SetPort(status.mac, card.gids.all())
	card.report(was, len(c.gids) > 0, tooSmall)
	return nil
}

// rename follows the interface's name.
func (card *Card) rename(now string) {
	if was := card.Name(); was != now {
		card.name.Store(&now)
		card.log.Info("the interface has another name", "was", was, "device", now)
	}
}

// portNow is the part of the port's state that programs see.
func (card *Card) portNow() portView {
	return portView{portStatus: card.status, rdma: card.activeMTU}
}

type portView struct {
	portStatus
	rdma wire.MTU
}

func (card *Card) logTrains(now *portView) {
	log := card.log.With("device", card.Name(), "in_trains", now.trains.Use)
	if now.noTrains != "" {
		log = log.With("because", now.noTrains)
	}
	log.Info("bursts leave the interface")
}

// report logs changes since the last look, and makes events of them.
func (card *Card) report(was portView, gids bool, tooSmall error) {
	now := card.portNow()
	if was.mtu == 0 || was.trains.Use != now.trains.Use {
		card.logTrains(&now)
	}
	if was.mtu == 0 {
		return // the first look
	}
	if was.up != now.up {
		card.log.Warn("port changed", "device", card.Name(), "up", now.up)
	}
	if was.mtu != now.mtu {
		card.log.Info("interface MTU changed", "device", card.Name(), "bytes", now.mtu, "rdma_mtu", now.rdma, "rdma_mtu_limit", card.largestMTU())
		if tooSmall != nil {
			card.log.Error("port is down", "device", card.Name(), "error", tooSmall)
		}
	}
	if now.lost != nil && was.lost == nil {
		card.log.Error("port is down", "device", card.Name(), "error", now.lost)
	}
	if now.stuck != nil && now.stuck != was.stuck {
		card.log.Error("the RDMA MTU does not follow the interface's; set that again when the cause is gone, or close the device and open it again", "device", card.Name(), "error", now.stuck)
	}
	switch {
	case now.up && !was.up:
		card.tell(provider.EventReport{Type: verbs.EventPortActive, Port: 1})
	case was.up && !now.up:
		card.tell(provider.EventReport{Type: verbs.EventPortErr, Port: 1})
	}
	if was.rdma != now.rdma || now.stuck != nil && now.stuck != was.stuck {
		card.tell(provider.EventReport{Type: verbs.EventMTUChange, Port: 1})
	}
	if gids {
		card.tell(provider.EventReport{Type: verbs.EventGIDChange, Port: 1})
	}
}

// largestMTU is the largest RDMA MTU that the port can have. The caller holds mu.
func (card *Card) largestMTU() wire.MTU {
	if card.status.stuck != nil {
		return card.carried
	}
	return card.mostMTU
}

// fittingMTU is the largest RDMA MTU, up to most, that fits an interface.
func fittingMTU(name string, interfaceMTU int, most wire.MTU) (wire.MTU, error) {
	fits := min(wire.MTUFor(interfaceMTU), most)
	if fits == 0 {
		return 0, fmt.Errorf("%w: MTU %d is too small for any RDMA MTU: the smallest, 256, needs %d; ip link set dev %s mtu 1500",
			verbs.ErrInvalid, interfaceMTU, wire.MTU256.Bytes()+wire.MTUOverhead, name)
	}
	return fits, nil
}

// checkAskedMTU refuses a requested RDMA MTU that does not fit the interface.
func checkAskedMTU(name string, interfaceMTU int, asked, fits wire.MTU) error {
	if asked > fits {
		return fmt.Errorf("%w: RDMA MTU %v does not fit: an interface MTU of %d allows %v, %v needs %d; ip link set dev %s mtu %[6]d",
			verbs.ErrInvalid, asked, interfaceMTU, fits, asked, asked.Bytes()+wire.MTUOverhead, name)
	}
	return nil
}
