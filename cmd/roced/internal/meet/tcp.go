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

// Dial connects from inside a network namespace, to a host whose link-local address has the device's zone or none. Names are
// looked up outside, and each address is dialled by this goroutine alone: one that the net package would start for
// a second address would be in the wrong namespace. The error names the server's command.
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
	return nil, fmt.Errorf("%w; is the server running there (%s)?", failures, server)
}

// lookup returns the addresses of a host. That of an address is itself, with its zone, which the net package drops. A link-local
// address without a zone is in that of the device.
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

// dialled is an address as the calling thread's namespace knows it. The net package remembers the names of zones from one
// namespace to the next; an interface's number it does not.
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

// Accept waits for one client, and listens no longer.
func Accept(ctx context.Context, listener net.Listener) (net.Conn, error) {
	defer listener.Close()
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	conn, err := listener.Accept()
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return conn, err
}

// Listen listens inside a network namespace.
func Listen(ctx context.Context, namespace string, port int) (listener net.Listener, err error) {
	err = hca.RunIn(namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
		return err
	})
	return listener, err
}

// Announce says who is waited for, and where. A device without an address is an error.
func Announce(d *card.Device, out io.Writer, at fmt.Stringer, whom string, gidIndex int) error {
	entry, err := d.ChooseGID(gidIndex, netip.Addr{}, verbs.GID{})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "waiting for %s on %v: %v\n", whom, at, d.Side(entry.GID.Addr().String()))
	return err
}
