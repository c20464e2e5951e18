// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// newDevice creates a device with a limit of cards, for any user, until the test ends.
func newDevice(t *testing.T, cards int) *Device {
	t.Helper()
	d, err := New(config.Namespaces{Device: "net0", Network: hca.NetworkUDP, Cards: cards, UserCards: cards}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// callerIn returns the caller for a user's program in a namespace.
func callerIn(t *testing.T, ns *lab.Namespace, user uint32) *peer.Caller {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Stat(ns.Path(), &stat); err != nil {
		t.Fatal(err)
	}
	return &peer.Caller{UID: user, Owner: user, Namespace: peer.Namespace{Device: stat.Dev, Inode: stat.Ino}, Path: ns.Path()}
}

// TestSuccessivePrograms: a program that connects while the previous card is being closed gets the next card.
func TestSuccessivePrograms(t *testing.T) {
	t.Parallel()
	host := labtest.Pair(t).A
	caller := callerIn(t, host, 0)
	d := newDevice(t, 1)
	ended := time.Now().Add(2 * time.Second)
	var programs sync.WaitGroup
	for range 3 {
		programs.Go(func() {
			for time.Now().Before(ended) {
				session, err := d.NewSessionOf(caller, hca.SessionConfig{})
				if err == nil {
					err = session.Close()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	programs.Wait()
}

// TestCardsAreReserved: the last eighth of all cards is not available to a user that has cards, but to another user.
func TestCardsAreReserved(t *testing.T) {
	t.Parallel()
	const cards = 8
	var hosts []*lab.Namespace
	for range cards / 2 {
		pair := labtest.Pair(t)
		hosts = append(hosts, pair.A, pair.B)
	}
	d := newDevice(t, cards)
	open := func(ns *lab.Namespace, user uint32) error {
		session, err := d.NewSessionOf(callerIn(t, ns, user), hca.SessionConfig{})
		if err == nil {
			t.Cleanup(func() { errtest.Check(t, session.Close()) })
		}
		return err
	}
	for _, host := range hosts[1:] {
		errtest.Check(t, open(host, 1))
	}
	errtest.Refused(t, open(hosts[0], 1), verbs.ErrLimit, "7 network namespaces have a card, of which user 1 has 7; the last 1 of namespaces.cards")
	errtest.Check(t, open(hosts[1], 1)) // a second program in a namespace that has a card
	errtest.Check(t, open(hosts[0], 2))
	errtest.Refused(t, open(labtest.Pair(t).A, 3), verbs.ErrLimit, "8 network namespaces have a card, the limit of namespaces.cards")
}
