package hca

import (
	"errors"
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// refresh brings the device up to what the host says now: port state, MTU,
// addresses, and the ways that address handles go. With an MTU that is too small for
// any RDMA MTU the port is down.
func (d *Device) refresh() error {
	status, err := d.host.port()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if ended := d.Err(); ended != nil {
		return ended
	}
	mtu, tooSmall := fittingMTU(d.name, status.mtu, d.maxMTU)
	status.up = status.up && tooSmall == nil
	if tooSmall == nil {
		d.activeMTU = mtu
		if d.askedMTU != 0 {
			d.activeMTU = min(mtu, d.askedMTU)
		}
	}
	added, removed := d.gids.set(status.addresses)
	was := d.status
	d.status = status
	defer func() { d.report(was, len(added)+len(removed) > 0) }() // when it holds
	if err := d.steer(added, removed); err != nil {
		return err
	}
	ways := d.resolveAgain()
	d.engine.Do(func() {
		d.engine.SetLink(status.up)
		d.engine.SetMTU(d.activeMTU)
		d.engine.SetAddresses(d.gids.all())
		for _, a := range ways {
			a.apply(d)
		}
	})
	return tooSmall
}

// report logs what has changed since the last look, and makes events of it.
func (d *Device) report(was portStatus, gids bool) {
	now := d.status
	if was.mtu == 0 {
		return // the first look
	}
	if was.up != now.up {
		d.log.Warn("port changed", "device", d.name, "up", now.up)
	}
	if was.mtu != now.mtu {
		d.log.Info("interface MTU changed", "device", d.name, "bytes", now.mtu, "rdma_mtu", d.activeMTU, "rdma_mtu_limit", d.maxMTU)
	}
	d.reportPort(was.up, now.up)
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

// changed is called by the follower. Without its interface the device has failed. What
// else cannot be followed is logged: the device goes on with what it knew, its port down.
func (d *Device) changed() {
	err := d.refresh()
	switch {
	case err == nil || d.Err() != nil:
	case errors.Is(err, errInterfaceGone):
		d.fail(err)
	default:
		d.log.Error("cannot follow a change of the host", "device", d.name, "error", err)
		d.portDown()
	}
}

func (d *Device) portDown() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.engine.Do(func() { d.engine.SetLink(false) })
	d.reportPort(d.status.up, false)
	d.status.up = false
}
