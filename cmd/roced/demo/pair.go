// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/ud"
)

// labPrefix begins the names of the demo's namespaces.
const labPrefix = "roced-demo"

// pairLab consists of two hosts on one wire.
type pairLab struct {
	left, right *host
	network     *memnet.Network // in-memory network of the hosts, if used
}

// host is a network namespace with a device and a queue pair in it.
type host struct {
	name string
	*lab.Namespace
	*card.Device
	*card.Endpoint
	peer ud.Addr // destination of its last stream
}

// endpointOptions returns options for queues that hold a window in each direction.
func endpointOptions(qkey verbs.QKey) ud.Options {
	return ud.Options{QKey: qkey, RecvDepth: 2 * window, SendDepth: window, Spin: true}
}

// address has the addresses of both hosts for one IP version.
type address struct{ version, left, right, length string }

var addresses = []address{
	{"IPv4", "10.77.0.1", "10.77.0.2", "/24"},
	{"IPv6", "fd77::1", "fd77::2", "/64"},
}

// newPairLab removes leftovers of killed demos and builds both hosts.
func newPairLab(ctx context.Context, log *slog.Logger, modes ...hca.Option) (*pairLab, error) {
	if err := lab.Prune(labPrefix); err != nil {
		return nil, fmt.Errorf("remove the namespaces of an earlier demo: %w", err)
	}
	l := &pairLab{left: &host{name: "left"}, right: &host{name: "right"}}
	if err := build(ctx, l, l.addNamespaces, l.addLink, func() error { return l.openDevices(log, modes) }); err != nil {
		return nil, err
	}
	return l, nil
}

// build runs the steps. If a step fails or panics, or ctx is done, it closes parts, which holds everything built so
// far.
func build(ctx context.Context, parts io.Closer, steps ...func() error) error {
	built := false
	defer func() {
		if !built {
			_ = parts.Close()
		}
	}()
	for _, step := range steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := step(); err != nil {
			return err
		}
	}
	built = true
	return nil
}

func (l *pairLab) hosts() []*host { return []*host{l.left, l.right} }

func (l *pairLab) addNamespaces() (err error) {
	for _, h := range l.hosts() {
		if h.Namespace, err = lab.New(labPrefix); err != nil {
			return err
		}
	}
	return nil
}

func (l *pairLab) addLink() error {
	if err := lab.Veth(l.left.Namespace, l.right.Namespace, "eth0", "eth0"); err != nil {
		return err
	}
	for _, a := range addresses {
		if err := l.left.AddAddress("eth0", a.left+a.length); err != nil {
			return err
		}
		if err := l.right.AddAddress("eth0", a.right+a.length); err != nil {
			return err
		}
	}
	return nil
}

func (l *pairLab) openDevices(log *slog.Logger, modes []hca.Option) (err error) {
	for _, h := range l.hosts() {
		if h.Device, err = card.Open("eth0", h.Path(), log.With("host", h.name), modes...); err != nil {
			return err
		}
		if h.Endpoint, err = card.OpenEndpoint(h.Device, endpointOptions(card.TestQKey)); err != nil {
			return err
		}
	}
	return nil
}

// Close removes everything.
func (l *pairLab) Close() (err error) {
	for _, h := range l.hosts() {
		if h.Endpoint != nil {
			err = errors.Join(err, h.Endpoint.Close())
		}
		if h.Device != nil {
			err = errors.Join(err, h.Device.Close())
		}
	}
	for _, h := range l.hosts() {
		if h.Namespace != nil {
			err = errors.Join(err, h.Namespace.Close())
		}
	}
	if l.network != nil {
		err = errors.Join(err, l.network.Close())
	}
	return err
}

// source returns the host's first GID of an IP version that is not link-local.
func (h *host) source(version string) (verbs.GID, error) {
	entries, err := h.QueryGIDTable(card.Port)
	if err != nil {
		return verbs.GID{}, err
	}
	for _, entry := range entries {
		if !entry.GID.IsLinkLocal() && entry.GID.IsIPv4() == (version == "IPv4") {
			return entry.GID, nil
		}
	}
	return verbs.GID{}, fmt.Errorf("%w: %s has no %s address", verbs.ErrNoGID, h.name, version)
}
