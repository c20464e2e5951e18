// SPDX-License-Identifier: Apache-2.0

package card

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
)

// Flags are the flags of commands that send or receive on a device.
type Flags struct {
	InterfaceFlags
	ModeFlags
	DaemonFlags
	GIDIndex int
	Log      *slog.Logger

	sockets []string // of services, for tests
}

// Add adds the flags to a flag set.
func (c *Flags) Add(f *pflag.FlagSet) {
	c.InterfaceFlags.Add(f)
	f.IntVarP(&c.GIDIndex, "gid-index", "g", AnyGID, "`index` of the source address in the GID table (roced show gid); -1 selects automatically")
	c.ModeFlags.Add(f)
	c.DaemonFlags.Add(f)
}

// Check validates the flags before anything is opened.
func (c *Flags) Check() error {
	if c.GIDIndex < AnyGID {
		return fmt.Errorf("--gid-index must be -1 or greater: %d", c.GIDIndex)
	}
	if c.selected() != "" {
		return c.checkDaemon()
	}
	return errors.Join(c.InterfaceFlags.Check(), c.ModeFlags.Check())
}

// Open opens the device of the service that --socket or ROCED_SOCKET selects. Otherwise it opens a card. If
// that fails because a service owns the interface, it opens that service's device, unless a flag configures a
// card of this process.
func (c *Flags) Open(ctx context.Context, options ...hca.Option) (*Device, error) {
	if socket := c.selected(); socket != "" {
		return Connect(ctx, socket, c.Device, c.Log)
	}
	if err := c.Enter(); err != nil {
		return nil, err
	}
	d, err := Open(c.Device, c.Path(), c.Log, append(options, c.Options()...)...)
	if err != nil && c.mayShare() {
		return c.openShared(ctx, err)
	}
	return d, err
}
