// SPDX-License-Identifier: Apache-2.0

package card

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// DaemonFlags select the device of a service or a card of this process.
type DaemonFlags struct {
	Daemon string // its socket, or noDaemon; empty: from the environment, or the service that owns the interface
	flags  *pflag.FlagSet
}

// noDaemon is the value of --socket that disables the use of a service.
const noDaemon = "none"

// ownFlags configure a card of this process. The devices of a service follow its configuration.
var ownFlags = []string{"network", "xdp", "tx", "copy", "zerocopy", "membership", "congestion"}

// Add adds the flags to a flag set.
func (d *DaemonFlags) Add(f *pflag.FlagSet) {
	d.flags = f
	daemon.AddSocket(f, &d.Daemon, "`socket` of the service whose device to use, or \""+noDaemon+"\" (default: "+client.DefaultPath+" if that service owns the interface)", noDaemon)
}

// selected returns the socket of the selected service, or "". Flags override the environment.
func (d *DaemonFlags) selected() string {
	switch {
	case d.Daemon == noDaemon, d.Daemon == "" && d.own() != "":
		return ""
	case d.Daemon == "":
		return daemon.NamedSocket()
	}
	return d.Daemon
}

// mayShare reports whether the device of a service that owns the interface can be used.
func (d *DaemonFlags) mayShare() bool { return d.Daemon == "" && d.own() == "" }

// own returns the first given flag that configures a card of this process, or "".
func (d *DaemonFlags) own() string {
	for _, name := range ownFlags {
		if d.flags != nil && d.flags.Changed(name) {
			return name
		}
	}
	return ""
}

func (d *DaemonFlags) checkDaemon() error {
	if own := d.own(); own != "" {
		return fmt.Errorf("--%s cannot be combined with --socket: the devices of a service follow its configuration", own)
	}
	return nil
}

// daemons returns the sockets of services that may own the interface: that of the host and that of a named
// network namespace (roced@.service).
func (c *Flags) daemons() []string {
	if c.sockets != nil {
		return c.sockets
	}
	paths := []string{client.DefaultPath}
	if c.Namespace != "" {
		paths = append(paths, filepath.Join(filepath.Dir(client.DefaultPath), filepath.Base(c.Namespace)+".sock"))
	}
	return paths
}

// openShared opens the device of a service that owns the interface, because this process cannot open it.
// Without such a service it returns failed.
func (c *Flags) openShared(ctx context.Context, failed error) (*Device, error) {
	if !errors.Is(failed, unix.EBUSY) && !errors.Is(failed, unix.EPERM) {
		return nil, failed
	}
	for _, path := range c.daemons() {
		d, err := Connect(ctx, path, c.Device, c.Log)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err
		case errors.Is(err, unix.EACCES), errors.Is(err, os.ErrDeadlineExceeded):
			return nil, fmt.Errorf("%w; the service may own it: %w", failed, err)
		case errors.Is(err, verbs.ErrHost), errors.Is(err, verbs.ErrInvalid): // no service or no such device
			continue
		case err != nil:
			return nil, fmt.Errorf("%w; the service may have a device with this name: %w", failed, err)
		}
		if c.isSame(d) {
			c.Log.Info("using the device of the service, which owns the interface", "device", c.Device, "socket", path)
			return d, nil
		}
		if err := d.Close(); err != nil {
			return nil, err
		}
	}
	return nil, failed
}

// isSame reports whether a device of the service is on the selected interface, not on an interface with the
// same name in another network namespace: an address and the interface index must match.
func (c *Flags) isSame(d *Device) bool {
	own, err := hca.ListGIDs(c.Device, hca.InNamespace(c.Path()))
	if err != nil {
		return false
	}
	theirs, err := d.QueryGIDTable(Port)
	if err != nil {
		return false
	}
	for _, mine := range own {
		for _, other := range theirs {
			if mine.GID == other.GID && mine.IfIndex == other.IfIndex {
				return true
			}
		}
	}
	return false
}
