// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// Dial connects from a network namespace to a host. A link-local address has the zone of the device or none.
// Names are resolved outside the namespace. Addresses are dialled one by one on this goroutine, because the
// net package would dial a second address on another goroutine, in the wrong namespace. Errors contain server, the
// command line of the server.
func Dial(ctx context.Context, d *card.Device, namespace, host string, port int, server string) (conn net.Conn, err error) {
	found, err := lookup(ctx, d, host)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	dialer := net.Dialer{Timeout: ReplyTimeout}
	var failures error
	for _, address := range found {
		err := hca.RunIn(namespace, func() error {
			target, err := dialled(address)
			if err == nil {
				conn, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(target, strconv.Itoa(port)))
			}
			return err
		})
		if err == nil {
			return conn, nil
		}
		failures = errors.Join(failures, err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("%w; check that the server runs there (%s)", failures, server)
}

// lookup returns the addresses of a host. An IP address keeps its zone, which the net package would drop; a
// link-local address without a zone gets that of the device.
func lookup(ctx context.Context, d *card.Device, host string) (found []netip.Addr, err error) {
	if address, failed := netip.ParseAddr(host); failed == nil {
		found = []netip.Addr{address}
	} else if found, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	for i := range found {
		if found[i], err = d.InZone(found[i]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// dialled formats an address with its zone as an interface index, because the net package caches zone names
// across namespaces.
func dialled(address netip.Addr) (string, error) {
	address = address.Unmap()
	if address.Zone() == "" {
		return address.String(), nil
	}
	link, err := net.InterfaceByName(address.Zone())
	if err != nil {
		return "", fmt.Errorf("zone of %v: %w", address, err)
	}
	return address.WithZone(strconv.Itoa(link.Index)).String(), nil
}

// Accept waits for one client and closes the listener.
func Accept(ctx context.Context, listener net.Listener) (net.Conn, error) {
	defer listener.Close()
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	conn, err := listener.Accept()
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return conn, err
}

// Listen listens in a network namespace.
func Listen(ctx context.Context, namespace string, port int) (listener net.Listener, err error) {
	err = hca.RunIn(namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
		return err
	})
	return listener, err
}

// Announce prints the expected peer and the address.
func Announce(d *card.Device, out io.Writer, at fmt.Stringer, whom string, gidIndex int) error {
	entry, err := d.ChooseGID(gidIndex, netip.Addr{}, verbs.GID{})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "waiting for %s on %v: %v\n", whom, at, d.Side(entry.GID.Addr().String()))
	return err
}
