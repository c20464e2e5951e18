package card

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
)

// Flags are those of every command that makes a card of an interface.
type Flags struct {
	InterfaceFlags
	ModeFlags
	sharedFlags
	GIDIndex int
	Log      *slog.Logger
}

// Add adds the flags to a command's.
func (c *Flags) Add(f *pflag.FlagSet) {
	c.InterfaceFlags.Add(f)
	f.IntVarP(&c.GIDIndex, "gid-index", "g", AnyGID, "`line` of the GID table to send from (roced show gid); -1: what suits")
	c.ModeFlags.Add(f)
	c.sharedFlags.add(f)
}

// Check finds mistakes before anything is opened.
func (c *Flags) Check() error {
	if c.GIDIndex < AnyGID {
		return fmt.Errorf("--gid-index %d: must be 0 or more, or -1", c.GIDIndex)
	}
	if c.asked() {
		return c.checkShared()
	}
	return errors.Join(c.InterfaceFlags.Check(), c.ModeFlags.Check())
}

// Open makes the card, or opens the service's.
func (c *Flags) Open(options ...hca.Option) (*Device, error) {
	if socket := c.shared(c.Device); socket != "" {
		return OpenShared(socket, c.Device, c.Log)
	}
	if err := c.Enter(); err != nil {
		return nil, err
	}
	return Open(c.Device, c.Path(), c.Log, append(options, c.Options()...)...)
}
