// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package memnet

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
)

// This package requires Linux. On other systems it declares its names, so that programs that use it compile and can be
// vetted; functions that create a host return verbs.ErrUnsupported.

var errLinux = fmt.Errorf("%w: package memnet needs Linux", verbs.ErrUnsupported)

// Network is an in-memory network.
type Network struct{}

// Host is a host on it.
type Host struct{}

// Impairment configures the impairments of a Network.
type Impairment struct {
	Loss, Duplication, Corruption, Reordering float64
	Delay, Jitter                             time.Duration
	Rate                                      uint64
	Mark                                      time.Duration
}

// Counters counts a Network's impaired frames.
type Counters struct{ Lost, Duplicated, Corrupted, Reordered, Overflowed, Marked uint64 }

// New creates a network without hosts.
func New(uint64) *Network { return &Network{} }

// OneMachine makes all hosts stand for one machine.
func (*Network) OneMachine() {}

// AddHost adds a host.
func (*Network) AddHost(string, ...netip.Addr) (*Host, error) { return nil, errLinux }

// Impair makes the network lose, duplicate, corrupt and delay frames.
func (*Network) Impair(Impairment) error { return errLinux }

// Counters returns the counters of impaired frames.
func (*Network) Counters() Counters { return Counters{} }

// Close closes the network with its hosts.
func (*Network) Close() error { return nil }

// SetAddresses replaces the host's addresses.
func (*Host) SetAddresses(...netip.Addr) error { return errLinux }

// SetUp sets the host's link up or down.
func (*Host) SetUp(bool) {}

// SetMTU sets the interface's MTU.
func (*Host) SetMTU(int) error { return errLinux }

// MAC returns the interface's MAC.
func (*Host) MAC() verbs.MAC { return verbs.MAC{} }

// Close removes the host.
func (*Host) Close() error { return nil }
