// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"errors"
	"fmt"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/port"
	"github.com/roced/roced/verbs/provider"
)

// portChange describes the changes of the port since the last look.
type portChange struct {
	up        bool                  // the link came up
	gids      map[wire.GID]struct{} // added or removed GIDs
	unsteered error                 // for addresses that XDP has no room for, which are not in the GID table
}

// firstLook reads the host's state for the first time. It fails if the interface is not usable in its state.
func (f *follower) firstLook() error {
	first, err := f.updatePort()
	if err != nil {
		return err
	}
	if first.unsteered != nil {
		f.log.Error("some addresses cannot be used", "device", f.port.Name(), "error", first.unsteered)
	}
	now := f.port.Now()
	_, tooSmall := now.RDMAMTU()
	return errors.Join(tooSmall, now.Lost)
}

// updatePort reads link state, MTU, MAC and addresses. If the MTU is too small for any RDMA MTU, the port is down. XDP
// steers an address before it is in the GID table, and until it is removed from it.
func (f *follower) updatePort() (c portChange, err error) {
	f.port.Asking.Lock()
	defer f.port.Asking.Unlock()
	if ended := f.life.err(); ended != nil {
		return c, ended
	}
	status, err := f.host.Port()
	if err != nil {
		return c, err
	}
	was := f.port.Now()
	added, removed := was.GIDs.Changes(status.Addresses)
	added, c.unsteered = f.steered(added)
	c.unsteered = errors.Join(c.unsteered, f.steerPort(was.Port, status))
	if err := f.movePort(status, added, removed, &c); err != nil {
		return c, err
	}
	for _, gid := range removed {
		c.unsteered = errors.Join(c.unsteered, f.host.RemoveAddress(gid.Addr()))
	}
	return c, nil
}

// steered makes XDP redirect packets to these addresses, and returns those for which that succeeded.
func (f *follower) steered(gids []wire.GID) (done []wire.GID, failed error) {
	refused := 0
	for _, gid := range gids {
		if err := f.host.AddAddress(gid.Addr()); err != nil {
			refused, failed = refused+1, err
			continue
		}
		done = append(done, gid)
	}
	if failed != nil {
		failed = fmt.Errorf("%d addresses of %s are not in the GID table: %w", refused, f.port.Name(), failed)
	}
	return done, failed
}

// movePort sets the card's state to the state that was read.
func (f *follower) movePort(status network.Port, added, removed []wire.GID, c *portChange) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ended := f.life.err(); ended != nil {
		return ended
	}
	f.rename(status.Name)
	was := f.port.Now()
	now, tooSmall := was.Next(status, added, removed)
	f.port.Set(now)
	c.up = now.Up && !was.Up
	c.gids = map[wire.GID]struct{}{}
	for _, gid := range slices.Concat(added, removed) {
		c.gids[gid] = struct{}{}
	}
	f.engine.Do(func() {
		f.engine.SetLink(now.Up)
		f.engine.SetMTU(now.RDMA)
		f.engine.SetAddresses(now.GIDs.All())
		f.setPort(status)
	})
	f.paths.SetPort(status.MAC, now.GIDs.All())
	f.reportPort(was, now, len(c.gids) > 0, tooSmall)
	return nil
}

// rename updates the interface's name.
func (f *follower) rename(now string) {
	if was := f.port.Name(); was != now {
		f.port.Rename(now)
		f.log.Info("the interface was renamed", "was", was, "device", now)
	}
}

func (f *follower) logTrains(now *port.State) {
	log := f.log.With("device", f.port.Name(), "in_trains", now.Trains)
	if now.NoTrains != "" {
		log = log.With("because", now.NoTrains)
	}
	log.Info("send mode of bursts")
}

// reportPort logs the changes since the last look, and reports events for them.
func (f *follower) reportPort(was, now *port.State, gids bool, tooSmall error) {
	if was.MTU == 0 || was.Trains != now.Trains {
		f.logTrains(now)
	}
	if was.MTU == 0 {
		return // the first look
	}
	if was.Up != now.Up {
		f.log.Warn("port changed", "device", f.port.Name(), "up", now.Up)
	}
	if was.MTU != now.MTU {
		f.log.Info("interface MTU changed", "device", f.port.Name(), "bytes", now.MTU, "rdma_mtu", now.RDMA, "rdma_mtu_limit", now.LargestMTU())
		if tooSmall != nil {
			f.log.Error("port is down", "device", f.port.Name(), "error", tooSmall)
		}
	}
	if now.Lost != nil && was.Lost == nil {
		f.log.Error("port is down", "device", f.port.Name(), "error", now.Lost)
	}
	if now.Stuck != nil && now.Stuck != was.Stuck {
		f.log.Error("the RDMA MTU does not follow the interface MTU; remove the cause and set the interface MTU again, or reopen the device", "device", f.port.Name(), "error", now.Stuck)
	}
	switch {
	case now.Up && !was.Up:
		f.report(provider.EventReport{Type: verbs.EventPortActive, Port: 1})
	case was.Up && !now.Up:
		f.report(provider.EventReport{Type: verbs.EventPortErr, Port: 1})
	}
	if was.RDMA != now.RDMA || now.Stuck != nil && now.Stuck != was.Stuck {
		f.report(provider.EventReport{Type: verbs.EventMTUChange, Port: 1})
	}
	if gids {
		f.report(provider.EventReport{Type: verbs.EventGIDChange, Port: 1})
	}
}

// steerPort sets the port's MACs and its subnets' broadcast addresses in the steering table.
func (f *follower) steerPort(was, now network.Port) error {
	macs := make([][6]byte, len(now.MACs))
	for i, mac := range now.MACs {
		macs[i] = mac
	}
	err := f.host.SetMACs(macs...)
	for _, address := range now.Broadcasts {
		err = errors.Join(err, f.host.AddBroadcast(address))
	}
	for _, address := range was.Broadcasts {
		if !slices.Contains(now.Broadcasts, address) {
			err = errors.Join(err, f.host.RemoveBroadcast(address))
		}
	}
	return err
}

// setPort sets the same in the engine. It runs in Do.
func (f *follower) setPort(now network.Port) {
	f.engine.SetMACs(now.MACs...)
	broadcasts := make([]wire.GID, len(now.Broadcasts))
	for i, address := range now.Broadcasts {
		broadcasts[i] = wire.GIDFromAddr(address)
	}
	f.engine.SetBroadcasts(broadcasts)
}
