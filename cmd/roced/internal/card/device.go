package card

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Port is the one port that a device has.
const Port = 1

// Device is a card in this process, or a session on the service's, with a context on it.
type Device struct {
	*verbs.Context
	provider provider.Provider
	Attr     verbs.DeviceAttr
	MTU      int             // RDMA MTU in bytes: the longest message
	Daemon   string          // its socket; empty for a card in this process
	links    *netlink.Handle // in the interface's namespace; nil without an interface, and over the service
	log      *slog.Logger
}

// Open makes a card of an interface in the network namespace of a file, or in the
// process's own if namespace is empty.
func Open(name, namespace string, log *slog.Logger, options ...hca.Option) (*Device, error) {
	options = append(options, hca.WithLogger(log))
	if namespace != "" {
		options = append(options, hca.InNamespace(namespace))
	}
	card, err := hca.Open(name, options...)
	if err != nil {
		return nil, err
	}
	d, err := Take(card, log)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	if err := d.look(namespace); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), d.Close())
	}
	return d, nil
}

// Connect opens a device of the service at a socket; its only one if name is empty. The Device has the
// counters of the service's card, on which there may be other programs, and none of an interface, which
// may be in another network namespace. When ctx is done it gives up.
func Connect(ctx context.Context, socket, name string, log *slog.Logger) (*Device, error) {
	session, err := client.DialContext(ctx, socket, name)
	if err != nil {
		return nil, err
	}
	d, err := Take(session, log)
	if err != nil {
		return nil, fmt.Errorf("open %s of the service at %s: %w", name, socket, err)
	}
	d.Daemon = socket
	return d, nil
}

// Take makes a Device of a card or a session, and closes that if it fails. The Device has no counters
// of an interface, since a card on a network in memory has none.
func Take(provider provider.Provider, log *slog.Logger) (*Device, error) {
	d := &Device{provider: provider, log: log}
	var err error
	if d.Context, err = verbs.Open(provider); err != nil {
		return nil, errors.Join(err, provider.Close())
	}
	if err := d.ask(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// look opens what tells of the interface.
func (d *Device) look(namespace string) error {
	return hca.RunIn(namespace, func() (err error) {
		d.links, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
}

// ask has the card say what it is.
func (d *Device) ask() (err error) {
	if d.Attr, err = d.QueryDevice(); err != nil {
		return err
	}
	attr, err := d.QueryPort(Port)
	d.MTU = attr.ActiveMTU.Bytes()
	return err
}

// Close closes the card or the session.
func (d *Device) Close() error {
	if d.links != nil {
		d.links.Close()
	}
	return d.Context.Close()
}
