// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
)

// filter implements network.Steering with the steering program.
type filter struct{ steering *bpf.Steering }

// limited wraps the error of a full table of the program in verbs.ErrLimit.
func limited(err error) error {
	if errors.Is(err, bpf.ErrTableFull) {
		return fmt.Errorf("%w: %w", verbs.ErrLimit, err)
	}
	return err
}

// The methods implement network.Steering.
func (f filter) AddQP(number uint32) error              { return limited(f.steering.AddQP(number)) }
func (f filter) RemoveQP(number uint32) error           { return f.steering.RemoveQP(number) }
func (f filter) AddAddress(address netip.Addr) error    { return limited(f.steering.AddAddress(address)) }
func (f filter) RemoveAddress(address netip.Addr) error { return f.steering.RemoveAddress(address) }
func (f filter) AddBroadcast(address netip.Addr) error {
	return limited(f.steering.AddBroadcast(address))
}
func (f filter) RemoveBroadcast(address netip.Addr) error { return f.steering.RemoveBroadcast(address) }
func (f filter) SetMACs(macs ...[6]byte) error            { return f.steering.SetMACs(macs...) }
func (f filter) AddGroup(group netip.Addr) error          { return limited(f.steering.AddGroup(group)) }
func (f filter) RemoveGroup(group netip.Addr) error       { return f.steering.RemoveGroup(group) }

// macsOf returns the destination MACs that the kernel accepts on the interface: its own and, for a VLAN, that of the
// interface below. A bond accepts its slaves' too, which can change at any time (balance-alb), so for a bond the list
// is empty: any MAC.
func (i *Interface) macsOf(own wire.MAC, below host.Link) []wire.MAC {
	if i.generic != nil {
		return nil
	}
	macs := []wire.MAC{own}
	if i.base == nil {
		return macs
	}
	if address := below.Attrs().HardwareAddr; len(address) == len(own) {
		macs = append(macs, wire.MAC(address))
	}
	return macs
}
