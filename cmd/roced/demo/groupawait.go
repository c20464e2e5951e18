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

// switchTimeout limits the wait for a new bridge to filter groups: it floods them until the response time of its first
// query ends.
const switchTimeout = 20 * time.Second

// awaitSwitch waits until the switch has an entry for the receiver's port and filters groups on other ports.
func (r *groupRun) awaitSwitch(ctx context.Context) error {
	member := lab.MDBEntry{Port: r.lab.receiver.port, Group: r.group}
	err := r.await(ctx, card.StallTimeout, "the switch has no multicast entry for the receiver", func() (bool, error) {
		list, err := r.lab.bridge.MDB()
		return slices.Contains(list, member), err
	})
	if err != nil {
		return err
	}
	flooded := r.lab.outsider.watch.of(r.noMembers)
	return r.await(ctx, switchTimeout, "the switch floods a group without members", func() (bool, error) {
		before := flooded.messages
		if err := r.sendOne(ctx, r.noMembers); err != nil {
			return false, err
		}
		err := r.flush(ctx)
		return flooded.messages == before, err
	})
}

// await polls until is returns true. It updates the watches before each call. failure describes a timeout.
func (r *groupRun) await(ctx context.Context, timeout time.Duration, failure string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%s: not within %v: %w", failure, timeout, unix.ETIMEDOUT))
	defer cancel()
	return poll(ctx, func() (bool, error) {
		if err := r.lab.update(); err != nil {
			return false, err
		}
		return is()
	})
}

// flush waits until the switch has forwarded all sent messages: it sends a message to the all-hosts group, and waits
// until that has passed every port.
func (r *groupRun) flush(ctx context.Context) error {
	if err := r.sendOne(ctx, r.allHosts); err != nil {
		return err
	}
	r.flushes++
	return r.await(ctx, card.StallTimeout, "a message to the all-hosts group did not reach all ports", func() (bool, error) {
		return !slices.ContainsFunc(r.lab.stations(), func(s *station) bool {
			return s.watch.of(r.allHosts).messages < r.flushes
		}), nil
	})
}
