package card

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
)

// Flags are those of every command that sends or receives on a device.
type Flags struct {
	InterfaceFlags
	ModeFlags
	DaemonFlags
	GIDIndex int
	Log      *slog.Logger

	sockets []string // of services, instead of the usual; for tests
}

// Add adds the flags to a command's.
func (c *Flags) Add(f *pflag.FlagSet) {
	c.InterfaceFlags.Add(f)
	f.IntVarP(&c.GIDIndex, "gid-index", "g", AnyGID, "`line` of the GID table to send from (roced show gid); -1: what suits")
	c.ModeFlags.Add(f)
	c.DaemonFlags.Add(f)
}

// Check finds mistakes before anything is opened.
func (c *Flags) Check() error {
	if c.GIDIndex < AnyGID {
		return fmt.Errorf("--gid-index %d: must be 0 or more, or -1", c.GIDIndex)
	}
	if c.asked() != "" {
		return c.checkDaemon()
	}
	return errors.Join(c.InterfaceFlags.Check(), c.ModeFlags.Check())
}

// Open opens the service's device if --socket, or ROCED_SOCKET, names one. Else it makes a card, or, if that cannot be
// because a service has the interface, opens that service's device; not if a flag is given that is about
// a card of this process.
func (c *Flags) Open(ctx context.Context, options ...hca.Option) (*Device, error) {
	if socket := c.asked(); socket != "" {
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
