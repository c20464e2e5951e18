//go:build !linux

package hca

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// The package's work needs Linux. Elsewhere it has the names that programs on a network in memory use, so that they
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

// New makes a card on a host.
func New(any, ...Option) (*Card, error) { return nil, errLinux }

// OpenPair makes the cards of two hosts on a network in memory.
func OpenPair(_, _ []netip.Addr, _ ...Option) (*Card, *Card, error) { return nil, nil, errLinux }

// ListDevices lists the host's interfaces.
func ListDevices() ([]verbs.Device, error) { return nil, errLinux }

// WatchDevices tells of the host's interfaces as they come and go.
func WatchDevices(context.Context, verbs.DeviceClient) error { return errLinux }

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
