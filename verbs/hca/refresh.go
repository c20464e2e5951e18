package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// refresh brings the device up to what the host says now: port state, MTU,
// addresses, and the ways that address handles go.
func (d *Device) refresh() error {
	status, err := d.host.port()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.logChange(status)
	d.status = status
	if err := d.chooseMTU(status.mtu); err != nil {
		return err
	}
	added, removed := d.gids.set(status.addresses)
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
	return nil
}

func (d *Device) logChange(now portStatus) {
	if d.status.mtu != 0 && d.status.up != now.up {
		d.log.Warn("port changed", "device", d.name, "up", now.up)
	}
	if d.status.mtu != 0 && d.status.mtu != now.mtu {
		d.log.Info("interface MTU changed", "device", d.name, "bytes", now.mtu)
	}
}

// chooseMTU takes the largest RDMA MTU that interface, link and caller allow.
func (d *Device) chooseMTU(interfaceMTU int) error {
	fits := min(wire.MTUFor(interfaceMTU), d.maxMTU)
	if fits == 0 {
		return fmt.Errorf("%w: MTU %d is too small for any RDMA MTU: the smallest, 256, needs %d; ip link set dev %s mtu 1500",
			verbs.ErrInvalid, interfaceMTU, wire.MTU256.Bytes()+wire.MTUOverhead, d.name)
	}
	if d.askedMTU > fits && d.activeMTU == 0 {
		return fmt.Errorf("%w: RDMA MTU %v does not fit: an interface MTU of %d allows %v, %v needs %d; ip link set dev %s mtu %[6]d",
			verbs.ErrInvalid, d.askedMTU, interfaceMTU, fits, d.askedMTU, d.askedMTU.Bytes()+wire.MTUOverhead, d.name)
	}
	d.activeMTU = fits
	if d.askedMTU != 0 {
		d.activeMTU = min(fits, d.askedMTU)
	}
	return nil
}

// changed is called by the follower. What cannot be followed is logged: the device
// goes on with what it knew.
func (d *Device) changed() {
	if err := d.refresh(); err != nil {
		d.log.Error("cannot follow a change of the host", "device", d.name, "error", err)
		d.engine.Do(func() { d.engine.SetLink(false) })
		d.mu.Lock()
		d.status.up = false
		d.mu.Unlock()
	}
}
