// SPDX-License-Identifier: Apache-2.0

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

// Port is the number of a device's only port.
const Port = 1

// Device is a card of this process, or a session on a device of the service, with a context.
type Device struct {
	*verbs.Context
	provider provider.Provider
	Attr     verbs.DeviceAttr
	MTU      int             // RDMA MTU in bytes: the maximum message size
	Daemon   string          // socket of the service; empty for a card of this process
	links    *netlink.Handle // in the namespace of the interface; nil without an interface, and over the service
	log      *slog.Logger
}

// Open opens a card on an interface. namespace is the file of its network namespace; empty means that of the process.
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
	if err := d.openLinks(namespace); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), d.Close())
	}
	return d, nil
}

// Connect opens a device of the service at a socket; the only one if name is empty. The Device has the
// counters of the service's card, which other programs may share, and no interface counters, because the
// interface may be in another network namespace. Connect returns when ctx is done.
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

// Take creates a Device from a card or a session, which it closes on failure. The Device has no interface
// counters.
func Take(provider provider.Provider, log *slog.Logger) (*Device, error) {
	d := &Device{provider: provider, log: log}
	var err error
	if d.Context, err = verbs.Open(provider); err != nil {
		return nil, errors.Join(err, provider.Close())
	}
	if err := d.query(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// openLinks opens the source of the interface counters.
func (d *Device) openLinks(namespace string) error {
	return hca.RunIn(namespace, func() (err error) {
		d.links, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
}

// query reads the attributes of the device.
func (d *Device) query() (err error) {
	if d.Attr, err = d.QueryDevice(); err != nil {
		return err
	}
	attr, err := d.QueryPort(Port)
	d.MTU = attr.ActiveMTU.Bytes()
	return err
}

// Close closes the card or session.
func (d *Device) Close() error {
	if d.links != nil {
		d.links.Close()
	}
	return d.Context.Close()
}
