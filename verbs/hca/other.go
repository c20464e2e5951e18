//go:build !linux

package hca

import (
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// The package's work needs Linux. Elsewhere it has the names that programs on a wire in memory use, so that they
// compile, and their editors and go vet find mistakes; what opens a card is verbs.ErrUnsupported.

var errLinux = fmt.Errorf("%w: package hca needs Linux", verbs.ErrUnsupported)

// Session is one program's use of a card.
type Session struct{ provider.Provider }

// Card is an RDMA card with one port.
type Card struct{ *Session }

// SessionConfig and Limits are what a session may have.
type (
	SessionConfig struct {
		Limits     Limits
		Privileged func() bool
	}
	Limits struct {
		PDs, MRs, CQs, QPs, AHs, SRQs, CompChannels, Memberships, Attachments, IDs, EventChannels int
		Memory                                                                                    uint64
	}
)

// Name is the interface's.
func (*Card) Name() string { return "" }

// NewSession opens the card for another program.
func (*Card) NewSession(SessionConfig) (*Session, error) { return nil, errLinux }

// Open makes a card of an interface.
func Open(string, ...Option) (*Card, error) { return nil, errLinux }

// OpenWire makes two cards on a wire in memory.
func OpenWire(_, _ []netip.Addr, _ ...Option) (*Card, *Card, error) { return nil, nil, errLinux }

// Wire is a network in memory.
type Wire struct{}

// WireHost is a host on a Wire.
type WireHost struct{ *Card }

// Impairment is what a wire does to frames.
type Impairment struct {
	Loss, Duplication, Corruption float64
	Delay, Jitter                 time.Duration
}

// NewWire makes a network without hosts.
func NewWire(uint64, ...Option) (*Wire, error) { return nil, errLinux }

// AddHost adds a host.
func (*Wire) AddHost(string, ...netip.Addr) (*WireHost, error) { return nil, errLinux }

// Impair has the wire lose, repeat, damage and delay frames.
func (*Wire) Impair(Impairment) error { return errLinux }

// Close ends it with its hosts.
func (*Wire) Close() error { return errLinux }

// SetAddresses gives the host other addresses.
func (*WireHost) SetAddresses(...netip.Addr) error { return errLinux }

// SetUp takes the host's link up or down.
func (*WireHost) SetUp(bool) {}

// SetMTU sets its interface's MTU.
func (*WireHost) SetMTU(int) error { return errLinux }

// MAC is its interface's.
func (*WireHost) MAC() verbs.MAC { return verbs.MAC{} }

// Option changes how a card is opened.
type Option func(*struct{})

// WithMTU limits the RDMA MTU.
func WithMTU(verbs.MTU) Option { return nil }

// WithSpin sets how long the worker looks for work.
func WithSpin(time.Duration) Option { return nil }

// WithoutInline keeps programs from running the card.
func WithoutInline() Option { return nil }

// WithoutWorker opens a card without a worker.
func WithoutWorker() Option { return nil }

// WithLogger sets the logger.
func WithLogger(*slog.Logger) Option { return nil }
