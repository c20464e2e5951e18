package hca

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// portChange is what a look at the port has found.
type portChange struct {
	up        bool                  // the link came up
	gids      map[wire.GID]struct{} // that came or went
	unsteered error                 // addresses that XDP cannot take: they are no GIDs
}

// concerns says whether a path depends on what has changed.
func (c *portChange) concerns(p *path) bool {
	_, source := c.gids[p.ends.source]
	_, dest := c.gids[p.ends.dest]
	return source || dest
}

// updatePort takes over link state, MTU, MAC and addresses. With an MTU that is too small
// for any RDMA MTU the port is down. An address is steered before it is a GID, and as long.
func (d *Device) updatePort() (c portChange, err error) {
	d.asking.Lock()
	defer d.asking.Unlock()
	status, err := d.host.port()
	if err != nil {
		return c, err
	}
	added, removed := d.gidChanges(status.addresses)
	added, c.unsteered = d.steered(added)
	was := d.portStatus()
	c.unsteered = errors.Join(c.unsteered, d.steerPort(was, status))
	if err := d.movePort(status, added, removed, &c); err != nil {
		return c, err
	}
	for _, gid := range removed {
		c.unsteered = errors.Join(c.unsteered, d.steering.RemoveAddress(gid.Addr()))
	}
	return c, nil
}

func (d *Device) portStatus() portStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status
}

func (d *Device) gidChanges(addresses []netip.Addr) (added, removed []wire.GID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gids.changes(addresses)
}

// steered has XDP let packets to addresses through, and gives those for which that worked.
func (d *Device) steered(gids []wire.GID) (done []wire.GID, failed error) {
	refused := 0
	for _, gid := range gids {
		if err := d.steering.AddAddress(gid.Addr()); err != nil {
			refused, failed = refused+1, err
			continue
		}
		done = append(done, gid)
	}
	if failed != nil {
		failed = fmt.Errorf("%d addresses of %s are not in the GID table: %w", refused, d.name, failed)
	}
	return done, failed
}

// movePort makes what was found the device's state.
func (d *Device) movePort(status portStatus, added, removed []wire.GID, c *portChange) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ended := d.Err(); ended != nil {
		return ended
	}
	was := d.portNow()
	mtu, tooSmall := fittingMTU(d.name, status.mtu, d.maxMTU)
	if tooSmall == nil {
		d.activeMTU = mtu
		if d.askedMTU != 0 {
			d.activeMTU = min(mtu, d.askedMTU)
		}
	}
	status.up = status.up && tooSmall == nil
	d.status = status
	d.gids.apply(added, removed)
	c.up = status.up && !was.up
	c.gids = map[wire.GID]struct{}{}
	for _, gid := range slices.Concat(added, removed) {
		c.gids[gid] = struct{}{}
	}
	d.engine.Do(func() {
		d.engine.SetLink(status.up)
		d.engine.SetMTU(d.activeMTU)
		d.engine.SetAddresses(d.gids.all())
		d.setPort(status)
		if was.mac != status.mac {
			for _, p := range d.paths {
				d.show(p)
			}
		}
	})
	d.report(was, len(c.gids) > 0, tooSmall)
	return nil
}

// portNow is what programs can see of the port.
func (d *Device) portNow() portView {
	return portView{portStatus: d.status, rdma: d.activeMTU}
}

type portView struct {
	portStatus
	rdma wire.MTU
}

// report logs what has changed since the last look, and makes events of it.
func (d *Device) report(was portView, gids bool, tooSmall error) {
	now := d.portNow()
	if was.mtu == 0 {
		return // the first look
	}
	if was.up != now.up {
		d.log.Warn("port changed", "device", d.name, "up", now.up)
	}
	if was.mtu != now.mtu {
		d.log.Info("interface MTU changed", "device", d.name, "bytes", now.mtu, "rdma_mtu", now.rdma, "rdma_mtu_limit", d.maxMTU)
		if tooSmall != nil {
			d.log.Error("port is down", "device", d.name, "error", tooSmall)
		}
	}
	d.reportPort(was.up, now.up)
	if was.rdma != now.rdma {
		d.events.put(verbs.EventReport{Type: verbs.EventMTUChange, Port: 1})
	}
	if gids {
		d.events.put(verbs.EventReport{Type: verbs.EventGIDChange, Port: 1})
	}
}

// fittingMTU is the largest RDMA MTU that an interface carries, and at most the given one.
func fittingMTU(name string, interfaceMTU int, most wire.MTU) (wire.MTU, error) {
	fits := min(wire.MTUFor(interfaceMTU), most)
	if fits == 0 {
		return 0, fmt.Errorf("%w: MTU %d is too small for any RDMA MTU: the smallest, 256, needs %d; ip link set dev %s mtu 1500",
			verbs.ErrInvalid, interfaceMTU, wire.MTU256.Bytes()+wire.MTUOverhead, name)
	}
	return fits, nil
}

// checkAskedMTU refuses an RDMA MTU that the interface does not carry.
func checkAskedMTU(name string, interfaceMTU int, asked, fits wire.MTU) error {
	if asked > fits {
		return fmt.Errorf("%w: RDMA MTU %v does not fit: an interface MTU of %d allows %v, %v needs %d; ip link set dev %s mtu %[6]d",
			verbs.ErrInvalid, asked, interfaceMTU, fits, asked, asked.Bytes()+wire.MTUOverhead, name)
	}
	return nil
}
