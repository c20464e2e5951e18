// SPDX-License-Identifier: Apache-2.0

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

// This package requires Linux. On other systems it declares the names that programs on an in-memory network use, so
// that these compile and can be vetted; functions that open a card return verbs.ErrUnsupported.

var errLinux = fmt.Errorf("%w: package hca needs Linux", verbs.ErrUnsupported)

// Session is one program's use of a card.
type Session struct{ provider.Provider }

// Card is an RDMA card with one port.
type Card struct{ *Session }

// SessionConfig and Limits configure the limits and privileges of a session.
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

// Name returns the name of the interface.
func (*Card) Name() string { return "" }

// NewSession creates a session for another program.
func (*Card) NewSession(SessionConfig) (*Session, error) { return nil, errLinux }

// Open creates a card on an interface.
func Open(string, ...Option) (*Card, error) { return nil, errLinux }

// New creates a card on a host.
func New(any, ...Option) (*Card, error) { return nil, errLinux }

// OpenPair creates the cards of two hosts on an in-memory network.
func OpenPair(_, _ []netip.Addr, _ ...Option) (*Card, *Card, error) { return nil, nil, errLinux }

// ListDevices lists the host's interfaces.
func ListDevices() ([]verbs.Device, error) { return nil, errLinux }

// WatchDevices reports the host's interfaces as they are added and removed.
func WatchDevices(context.Context, verbs.DeviceClient) error { return errLinux }

// Option changes how a card is opened.
type Option func(*struct{})

// WithMTU limits the RDMA MTU.
func WithMTU(verbs.MTU) Option { return nil }

// WithSpin sets how long the worker polls for work.
func WithSpin(time.Duration) Option { return nil }

// WithoutInline prevents programs from running the card.
func WithoutInline() Option { return nil }

// WithoutWorker opens a card without a worker.
func WithoutWorker() Option { return nil }

// WithLogger sets the logger.
func WithLogger(*slog.Logger) Option { return nil }
