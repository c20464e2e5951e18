//go:build linux

package hca

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/verbs"
)

// filter is the steering program as a card sees it: network.Steering.
type filter struct{ steering *bpf.Steering }

// limited says that a table of the program that is full is a limit.
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
