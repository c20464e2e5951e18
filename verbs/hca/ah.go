package hca

import (
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// ah is an address handle: what it was made with, and the way it goes now.
type ah struct {
	pd     *pd
	attr   verbs.AHAttr
	source wire.GID
	hot    *datapath.AH
	local  bool    // the destination is this device
	routed bool    // the last look found a route
	hop    nextHop // held by the handle; of the last route, if there is none now
}

// CreateAH implements verbs.Provider. It may wait for a neighbour to answer, and
// holds no lock meanwhile.
func (d *Device) CreateAH(pdHandle verbs.Handle, attr verbs.AHAttr) (verbs.Handle, error) {
	if err := checkAH(&attr); err != nil {
		return 0, err
	}
	a, err := d.newAH(pdHandle, attr)
	if err != nil {
		return 0, err
	}
	defer d.others.Done()
	if err := d.reach(a); err != nil {
		d.abandon(a)
		return 0, err
	}
	handle, err := d.publishAH(a)
	if err != nil {
		d.abandon(a)
	}
	return handle, err
}

func checkAH(attr *verbs.AHAttr) error {
	dest := attr.GRH.DGID
	switch {
	case dest.IsZero():
		return fmt.Errorf("%w: no destination GID", verbs.ErrInvalid)
	case attr.GRH.FlowLabel > 0xFFFFF:
		return fmt.Errorf("%w: flow label 0x%x has more than 20 bits", verbs.ErrInvalid, attr.GRH.FlowLabel)
	}
	return checkPort(attr.Port)
}

// newAH checks what the handle refers to, and whether it leads to this device. The
// PD and the device stay until the handle is abandoned, or destroyed.
func (d *Device) newAH(pdHandle verbs.Handle, attr verbs.AHAttr) (*ah, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	p, err := d.pds.get(pdHandle)
	if err != nil {
		return nil, err
	}
	source, err := d.gids.get(attr.GRH.SGIDIndex)
	if err != nil {
		return nil, err
	}
	dest := attr.GRH.DGID
	if source.IsIPv4() != dest.IsIPv4() {
		return nil, fmt.Errorf("%w: source GID %v (index %d) and destination %v are not of one IP version; choose another SGIDIndex",
			verbs.ErrInvalid, source, attr.GRH.SGIDIndex, dest)
	}
	p.users++
	d.others.Add(1)
	return &ah{pd: p, attr: attr, source: source, hot: &datapath.AH{PD: p.number}, local: d.gids.contains(dest)}, nil
}

// reach finds the way to a new handle's destination, and waits for the neighbour.
func (d *Device) reach(a *ah) error {
	if a.local {
		return nil
	}
	dest := a.attr.GRH.DGID.Addr()
	hop, err := d.host.way(a.source.Addr(), dest)
	if err != nil {
		return err
	}
	if err := d.host.hold(hop.address); err != nil {
		return err
	}
	a.hop, a.routed = hop, true
	if hop.reachable {
		return nil
	}
	err = d.host.await(hop.address, dest, d.done)
	if ended := d.Err(); ended != nil {
		return ended
	}
	return err
}

// abandon gives back what a handle holds that will not be, or is no more.
func (d *Device) abandon(a *ah) {
	d.host.release(a.hop.address)
	d.mu.Lock()
	defer d.mu.Unlock()
	a.pd.users--
}

// publishAH makes the handle known. What the host changed while it was being
// reached is made up for; what comes now is followed.
func (d *Device) publishAH(a *ah) (verbs.Handle, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	handle, err := d.ahs.add(a)
	if err != nil {
		return 0, err
	}
	d.redirect(a, ways{})
	d.engine.Do(func() {
		a.apply(d)
		d.engine.SetAH(uint32(handle), a.hot)
	})
	return handle, nil
}

// apply writes the way that the handle goes now. It runs between two bursts.
func (a *ah) apply(d *Device) {
	route := a.attr.GRH
	a.hot.Template = wire.NewTemplate(wire.Path{
		SourceMAC: d.status.mac, DestMAC: a.hop.mac, VLAN: d.vlan, Source: a.source, Dest: route.DGID,
		TrafficClass: route.TrafficClass, HopLimit: route.HopLimit, FlowLabel: route.FlowLabel,
	})
	a.hot.Local = a.local
	a.hot.Group, a.hot.Dest = route.DGID.IsMulticast(), route.DGID
	a.hot.Unreachable = !a.local && !(a.routed && a.hop.reachable)
}

// DestroyAH implements verbs.Provider.
func (d *Device) DestroyAH(handle verbs.Handle) error {
	if err := d.enterToFree(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	a, err := d.ahs.get(handle)
	if err != nil {
		return err
	}
	d.engine.Do(func() { d.engine.SetAH(uint32(handle), nil) })
	d.ahs.remove(handle)
	a.pd.users--
	d.host.release(a.hop.address)
	return nil
}

// pair is the two ends of a way.
type pair struct{ source, dest wire.GID }

// ways are next hops that were looked up, nil where there is none. Many handles
// lead to one destination: each is looked up once.
type ways map[pair]*nextHop

// resolveAgain finds the present way of every handle, without waiting, and gives
// those to apply. The caller holds d.mu.
func (d *Device) resolveAgain() (all []*ah) {
	known := ways{}
	for _, a := range d.ahs.objects {
		if a != nil {
			d.redirect(a, known)
			all = append(all, a)
		}
	}
	return all
}

// redirect finds the present way of a handle. Without a route it keeps the next hop
// that it had, which is asked for on as long as the handle lives.
func (d *Device) redirect(a *ah, known ways) {
	if a.local = d.gids.contains(a.attr.GRH.DGID); a.local {
		return
	}
	to := pair{a.source, a.attr.GRH.DGID}
	hop, seen := known[to]
	if !seen {
		hop = d.wayNow(to)
		known[to] = hop
	}
	if a.routed = hop != nil; !a.routed {
		return
	}
	if hop.address != a.hop.address {
		if err := d.host.hold(hop.address); err != nil {
			d.log.Warn("next hop cannot be asked for", "device", d.name, "destination", to.dest, "error", err)
			a.routed = false
			return
		}
		d.host.release(a.hop.address)
	}
	a.hop = *hop
}

// wayNow is the way as far as it is known without asking, nil if there is none.
func (d *Device) wayNow(to pair) *nextHop {
	if !d.gids.contains(to.source) {
		return nil
	}
	hop, err := d.host.way(to.source.Addr(), to.dest.Addr())
	if err != nil {
		d.log.Warn("destination is unreachable for now", "device", d.name, "destination", to.dest, "error", err)
		return nil
	}
	if !hop.reachable {
		d.host.renew(hop.address)
	}
	return &hop
}

// neighbourChanged is called by the follower: a neighbour moved, failed, or came back.
func (d *Device) neighbourChanged(now nextHop) {
	if !now.address.IsValid() {
		return // handles without a next hop have no address either
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var affected []*ah
	for _, a := range d.ahs.objects {
		if a != nil && a.hop.address == now.address && a.hop != now {
			a.hop = now
			affected = append(affected, a)
		}
	}
	if len(affected) == 0 {
		return
	}
	d.log.Info("neighbour changed", "device", d.name, "address", now.address, "mac", now.mac, "reachable", now.reachable, "handles", len(affected))
	d.engine.Do(func() {
		for _, a := range affected {
			a.apply(d)
		}
	})
}
