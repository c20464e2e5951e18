// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/internal/lab"
	"golang.org/x/sys/unix"
)

// switchTimeout bounds the time until a new bridge filters: it floods until responses to its first
// query are due.
const switchTimeout = 20 * time.Second

// awaitSwitch waits until the switch knows the receiver's port and filters the group on other
// ports.
func (r *groupRun) awaitSwitch(ctx context.Context) error {
	member := lab.MDBEntry{Port: r.lab.receiver.port, Group: r.group}
	err := r.await(ctx, card.StallTimeout, "the switch does not know the receiver", func() (bool, error) {
		list, err := r.lab.bridge.MDB()
		return slices.Contains(list, member), err
	})
	if err != nil {
		return err
	}
	flooded := r.lab.outsider.watch.of(r.nobodys)
	return r.await(ctx, switchTimeout, "the switch does not snoop", func() (bool, error) {
		before := flooded.messages
		if err := r.sendOne(ctx, r.nobodys); err != nil {
			return false, err
		}
		err := r.flush(ctx)
		return flooded.messages == before, err
	})
}

// await is poll for conditions on the watches.
func (r *groupRun) await(ctx context.Context, timeout time.Duration, failure string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%s: not within %v: %w", failure, timeout, unix.ETIMEDOUT))
	defer cancel()
	return poll(ctx, func() (bool, error) {
		if err := r.lab.look(); err != nil {
			return false, err
		}
		return is()
	})
}

// flush waits until all sent messages have passed their ports: it sends a message to all hosts
// after them.
func (r *groupRun) flush(ctx context.Context) error {
	if err := r.sendOne(ctx, r.allHosts); err != nil {
		return err
	}
	r.flushes++
	return r.await(ctx, card.StallTimeout, "a message to all hosts does not reach all", func() (bool, error) {
		return !slices.ContainsFunc(r.lab.stations(), func(s *station) bool {
			return s.watch.of(r.allHosts).messages < r.flushes
		}), nil
	})
}
