// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs/hca/network"
	"golang.org/x/sys/unix"
)

// Neighbour implements network.Routes.
func (i *Interface) Neighbour(hop netip.Addr) (network.Neighbour, error) {
	n, err := i.queries.Neighbour(hop)
	if err != nil {
		return network.Neighbour{}, err
	}
	status := network.Neighbour{Known: n.Known() && len(n.MAC) == len(wire.MAC{}), Failed: n.Failed(), Absent: n.State == 0}
	copy(status.MAC[:], n.MAC)
	return status, nil
}

// Hold implements network.Routes. It leaves alone an entry that is permanent or managed by another
// program. An entry of ours that has no answer yet is asked for again at once.
func (i *Interface) Hold(hop netip.Addr) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	entry, err := i.queries.Neighbour(hop)
	if err != nil {
		return err
	}
	if entry.Foreign() || entry.Managed() && !i.managed[hop] {
		return nil
	}
	if i.managed[hop] && entry.State&unix.NUD_INCOMPLETE != 0 {
		if err := i.queries.Forget(hop); err != nil {
			return err
		}
	}
	if err := i.journals.neighbours.Add(hop.String()); err != nil && !i.warned {
		i.warned = true
		i.log.Warn("cannot write the journal: if this process is killed, the kernel will keep its managed neighbour entries", "device", i.Name(), "error", err)
	}
	was := i.managed[hop]
	i.managed[hop] = true
	err = i.queries.Manage(hop)
	if err != nil && !was {
		delete(i.managed, hop)
		_ = i.journals.neighbours.Remove(hop.String())
	}
	return err
}

// Release implements network.Routes.
func (i *Interface) Release(hop netip.Addr) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unmanage(hop)
}

// unmanage makes the kernel age an entry of ours again, or deletes it if it is not resolved. The entry may have been
// deleted, or belong to another program, by now.
func (i *Interface) unmanage(hop netip.Addr) {
	if !i.managed[hop] {
		return
	}
	delete(i.managed, hop)
	if unmanageEntry(i.queries, hop, i.sharesGroup(hop)) == nil || i.gone() {
		_ = i.journals.neighbours.Remove(hop.String())
	}
}

// sharesGroup reports whether the requests for another neighbour of ours go to the same IPv6 group.
func (i *Interface) sharesGroup(hop netip.Addr) bool {
	for other := range i.managed {
		if hop.Is6() && other.Is6() && host.SolicitedNode(other) == host.SolicitedNode(hop) {
			return true
		}
	}
	return false
}

// gone reports whether the interface was deleted, and its neighbours with it.
func (i *Interface) gone() bool {
	_, err := i.queries.Link()
	return errors.Is(err, host.ErrNoInterface)
}
