//go:build !linux

package memnet

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
)

// The package's work needs Linux. Elsewhere it has its names, so that programs that use it compile, and their editors
// and go vet find mistakes; what makes a host is verbs.ErrUnsupported.

var errLinux = fmt.Errorf("%w: package memnet needs Linux", verbs.ErrUnsupported)

// Network is a network in memory.
type Network struct{}

// Host is a host on it.
type Host struct{}

// Impairment is what a Network does to frames.
type Impairment struct {
	Loss, Duplication, Corruption, Reordering float64
	Delay, Jitter                             time.Duration
	Rate                                      uint64
}

// Counters count what a Network has done to frames.
type Counters struct{ Lost, Duplicated, Corrupted, Reordered, Overflowed uint64 }

// New makes a network without hosts.
func New(uint64) *Network { return &Network{} }

// AddHost adds a host.
func (*Network) AddHost(string, ...netip.Addr) (*Host, error) { return nil, errLinux }

// Impair has the network lose, repeat, damage and delay frames.
func (*Network) Impair(Impairment) error { return errLinux }

// Counters are what the network has done to frames.
func (*Network) Counters() Counters { return Counters{} }

// Close ends it with its hosts.
func (*Network) Close() error { return nil }

// SetAddresses gives the host other addresses.
func (*Host) SetAddresses(...netip.Addr) error { return errLinux }

// SetUp takes the host's link up or down.
func (*Host) SetUp(bool) {}

// SetMTU sets its interface's MTU.
func (*Host) SetMTU(int) error { return errLinux }

// MAC is its interface's.
func (*Host) MAC() verbs.MAC { return verbs.MAC{} }

// Close takes the host away.
func (*Host) Close() error { return nil }
