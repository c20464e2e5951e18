package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/mcast/membership"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// switchLab is three hosts on the ports of a bridge.
type switchLab struct {
	bridge                     *lab.Bridge
	sender, receiver, outsider *station
}

// station is a host on a port. Its queue pairs are hosts that share the rest.
type station struct {
	name, role string
	addresses  []string
	queuePairs int
	*lab.Namespace
	*device
	hosts []*host
	port  string
	watch *watch
}

// newSwitchLab builds all of it.
func newSwitchLab(ctx context.Context, log *slog.Logger, modes ...hca.Option) (*switchLab, error) {
	l := &switchLab{
		sender:   &station{name: "sender", role: "send-only member", queuePairs: 1, addresses: []string{"10.77.0.1", "fd77::1"}},
		receiver: &station{name: "receiver", role: "full member", queuePairs: 3, addresses: []string{"10.77.0.2", "fd77::2"}},
		outsider: &station{name: "outsider", role: "not in the group", queuePairs: 1, addresses: []string{"10.77.0.3", "fd77::3"}},
	}
	steps := []func() error{l.addBridge}
	for _, s := range l.stations() {
		steps = append(steps, func() error { return s.plugIn(l.bridge) }, func() error { return s.open(log, modes) })
	}
	if err := build(ctx, l, steps...); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *switchLab) stations() []*station { return []*station{l.sender, l.receiver, l.outsider} }

func (l *switchLab) addBridge() (err error) {
	if l.bridge, err = lab.NewBridge(labPrefix); err != nil {
		return fmt.Errorf("the multicast part needs the kernel's bridge: %w", err)
	}
	return nil
}

// plugIn makes a namespace, joins it to the switch, and watches the port.
func (s *station) plugIn(bridge *lab.Bridge) (err error) {
	if s.Namespace, err = lab.New(labPrefix); err != nil {
		return err
	}
	if s.port, err = bridge.Port(s.Namespace, "eth0"); err != nil {
		return err
	}
	for i, a := range addresses {
		if err := s.AddAddress("eth0", s.addresses[i]+a.length); err != nil {
			return err
		}
	}
	s.watch, err = newWatch(bridge.Namespace, s.port)
	return err
}

// open makes a card of the host's link. Its memberships are sockets, of which a
// demo that is killed leaves no record under /run.
func (s *station) open(log *slog.Logger, modes []hca.Option) (err error) {
	s.device, err = openDevice("eth0", s.Path(), log.With("host", s.name), append(modes[:len(modes):len(modes)], hca.WithMembership(membership.Socket))...)
	if err != nil {
		return err
	}
	for range s.queuePairs {
		e, err := newEndpoint(s.device, endpointAttr{depth: window, size: s.mtu, qkey: verbs.UDPQKey})
		if err != nil {
			return err
		}
		s.hosts = append(s.hosts, &host{name: s.name, Namespace: s.Namespace, device: s.device, endpoint: e})
	}
	return nil
}

// look has all watches count what has passed.
func (l *switchLab) look() (err error) {
	for _, s := range l.stations() {
		err = errors.Join(err, s.watch.look())
	}
	return err
}

// Close removes everything.
func (l *switchLab) Close() (err error) {
	for _, s := range l.stations() {
		err = errors.Join(err, s.close())
	}
	if l.bridge != nil {
		err = errors.Join(err, l.bridge.Close())
	}
	return err
}

func (s *station) close() (err error) {
	for _, h := range s.hosts {
		err = errors.Join(err, h.endpoint.Close())
	}
	if s.device != nil {
		err = errors.Join(err, s.device.Close())
	}
	if s.watch != nil {
		err = errors.Join(err, s.watch.Close())
	}
	if s.Namespace != nil {
		err = errors.Join(err, s.Namespace.Close())
	}
	return err
}
