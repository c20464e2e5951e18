package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// labPrefix begins the names of the demo's namespaces.
const labPrefix = "roced-demo"

// window is how many messages the demo has in flight: never more than receives are posted.
const window = 64

// demoLab is two hosts on one wire.
type demoLab struct{ left, right *host }

// host is a network namespace with a device and a queue pair in it.
type host struct {
	name string
	*lab.Namespace
	*device
	*endpoint
}

// address is one IP version's addresses of the two hosts.
type address struct{ version, left, right, length string }

var addresses = []address{
	{"IPv4", "10.77.0.1", "10.77.0.2", "/24"},
	{"IPv6", "fd77::1", "fd77::2", "/64"},
}

// newDemoLab builds both hosts, after it has removed what killed demos left.
func newDemoLab(ctx context.Context, log *slog.Logger, modes ...hca.Option) (*demoLab, error) {
	if err := lab.Prune(labPrefix); err != nil {
		return nil, fmt.Errorf("remove what an earlier demo left: %w", err)
	}
	l := &demoLab{left: &host{name: "left"}, right: &host{name: "right"}}
	if err := build(ctx, l, l.addNamespaces, l.addLink, func() error { return l.openDevices(log, modes) }); err != nil {
		return nil, err
	}
	return l, nil
}

// build takes the steps, and closes what they have built so far if one of them fails or
// panics, or ctx is done.
func build(ctx context.Context, what io.Closer, steps ...func() error) error {
	built := false
	defer func() {
		if !built {
			_ = what.Close()
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

func (l *demoLab) hosts() []*host { return []*host{l.left, l.right} }

func (l *demoLab) addNamespaces() (err error) {
	for _, h := range l.hosts() {
		if h.Namespace, err = lab.New(labPrefix); err != nil {
			return err
		}
	}
	return nil
}

func (l *demoLab) addLink() error {
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

func (l *demoLab) openDevices(log *slog.Logger, modes []hca.Option) (err error) {
	for _, h := range l.hosts() {
		if h.device, err = openDevice("eth0", h.Path(), log.With("host", h.name), modes...); err != nil {
			return err
		}
		if h.endpoint, err = newEndpoint(h.device, endpointAttr{depth: window, size: h.mtu, qkey: testQKey}); err != nil {
			return err
		}
	}
	return nil
}

// Close removes everything.
func (l *demoLab) Close() (err error) {
	for _, h := range l.hosts() {
		if h.endpoint != nil {
			err = errors.Join(err, h.endpoint.Close())
		}
		if h.device != nil {
			err = errors.Join(err, h.device.Close())
		}
	}
	for _, h := range l.hosts() {
		if h.Namespace != nil {
			err = errors.Join(err, h.Namespace.Close())
		}
	}
	return err
}

// source is the line of the host's GID table with its address of an IP version.
func (h *host) source(version string) (verbs.GIDEntry, error) {
	entries, err := h.GIDs(port)
	if err != nil {
		return verbs.GIDEntry{}, err
	}
	for _, entry := range entries {
		if !entry.GID.IsLinkLocal() && entry.GID.IsIPv4() == (version == "IPv4") {
			return entry, nil
		}
	}
	return verbs.GIDEntry{}, fmt.Errorf("%w: %s has no %s address", verbs.ErrNoGID, h.name, version)
}
