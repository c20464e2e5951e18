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

// DaemonFlags say whose card is used: the service's, or one of this process.
type DaemonFlags struct {
	Daemon string // its socket, or noDaemon; empty: the environment's, or that of a service that has the interface
	flags  *pflag.FlagSet
}

// noDaemon is the value of --socket that keeps a command from looking for one.
const noDaemon = "none"

// ownFlags are about a card in this process: the service's configuration says what holds for its devices.
var ownFlags = []string{"network", "xdp", "tx", "copy", "zerocopy", "membership", "congestion"}

// Add adds the flag to a command's.
func (d *DaemonFlags) Add(f *pflag.FlagSet) {
	d.flags = f
	daemon.AddSocket(f, &d.Daemon, "`socket` of the service whose device to use; by itself that at "+client.DefaultPath+" is used if it has the interface, and \""+noDaemon+"\" keeps from that", noDaemon)
}

// asked gives the socket of the service whose device is asked for; empty if that is not so. What the environment says
// gives way to flags.
func (d *DaemonFlags) asked() string {
	switch {
	case d.Daemon == noDaemon, d.Daemon == "" && d.own() != "":
		return ""
	case d.Daemon == "":
		return daemon.NamedSocket()
	}
	return d.Daemon
}

// mayShare reports whether a service's device will do if it has the interface.
func (d *DaemonFlags) mayShare() bool { return d.Daemon == "" && d.own() == "" }

// own gives the first flag that is about a card in this process; empty if none is given.
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
		return fmt.Errorf("--%s and --socket exclude each other: the service's configuration says how its devices are opened", own)
	}
	return nil
}

// services are the sockets of those that may have the interface: the host's, and that of a named
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

// openShared opens the device of a service that has the interface, which is why this process cannot
// open it, or need not be able to. Without such a service it gives that failure.
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
			return nil, fmt.Errorf("%w; the service may have it: %w", failed, err)
		case errors.Is(err, verbs.ErrHost), errors.Is(err, verbs.ErrInvalid): // no service, or no such device
			continue
		case err != nil:
			return nil, fmt.Errorf("%w; the service may have one of this name: %w", failed, err)
		}
		if c.isSame(d) {
			c.Log.Info("the service has the interface: its device is used", "device", c.Device, "socket", path)
			return d, nil
		}
		if err := d.Close(); err != nil {
			return nil, err
		}
	}
	return nil, failed
}

// isSame reports whether a service's device is on the interface that is asked for, and not on one of
// the same name in another network namespace: they have an address and a number in common.
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
