// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"golang.org/x/sys/unix"
)

// switchLab consists of three hosts on the ports of a bridge.
type switchLab struct {
	bridge                     *lab.Bridge
	sender, receiver, outsider *station
	network                    *memnet.Network // in-memory network of the hosts; then there is no bridge
}

// newSwitchLab builds the lab.
func newSwitchLab(ctx context.Context, log *slog.Logger, modes ...hca.Option) (*switchLab, error) {
	l := newStations()
	steps := []func() error{l.addBridge}
	for _, s := range l.stations() {
		steps = append(steps, func() error { return s.plugIn(l.bridge) }, func() error { return s.open(log, modes) })
	}
	steps = append(steps, l.begin)
	if err := build(ctx, l, steps...); err != nil {
		return nil, err
	}
	return l, nil
}

// newStations returns the hosts, before anything is created.
func newStations() *switchLab {
	return &switchLab{
		sender:   &station{name: "sender", role: "send-only member", queuePairs: 1, addresses: []string{"10.77.0.1", "fd77::1"}},
		receiver: &station{name: "receiver", role: "full member", queuePairs: 3, addresses: []string{"10.77.0.2", "fd77::2"}},
		outsider: &station{name: "outsider", role: "not in the group", queuePairs: 1, addresses: []string{"10.77.0.3", "fd77::3"}},
	}
}

func (l *switchLab) stations() []*station { return []*station{l.sender, l.receiver, l.outsider} }

func (l *switchLab) addBridge() (err error) {
	if l.bridge, err = lab.NewBridge(labPrefix); err != nil {
		return fmt.Errorf("the multicast part needs the kernel's bridge: %w", err)
	}
	return nil
}

// begin resets all watches. They are not read while the hosts are set up, so they may have lost frames.
func (l *switchLab) begin() (err error) {
	for _, s := range l.stations() {
		if failed := s.watch.update(); !errors.Is(failed, unix.ENOBUFS) {
			err = errors.Join(err, failed)
		}
		clear(s.watch.groups)
	}
	return err
}

// update makes all watches count the packets since the last update.
func (l *switchLab) update() (err error) {
	if l.network != nil {
		return nil
	}
	for _, s := range l.stations() {
		err = errors.Join(err, s.watch.update())
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
	if l.network != nil {
		err = errors.Join(err, l.network.Close())
	}
	return err
}
