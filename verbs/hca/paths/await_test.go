// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/quota"
)

// user is a session that ends when the test closes its channel.
type user struct {
	ended chan struct{}
	pays  *quota.Quota
}

func newUser(pays *quota.Quota) user { return user{make(chan struct{}), pays} }

func (u user) Payer() *quota.Quota   { return u.pays }
func (u user) Done() <-chan struct{} { return u.ended }

func (u user) Err() error {
	select {
	case <-u.ended:
		return verbs.ErrClosed
	default:
		return nil
	}
}

// A waiter for a neighbour gets its response, its failure, or the end of the wait.
func TestAwait(t *testing.T) {
	for _, row := range []struct {
		name   string
		after  func(*Table, *around, user, context.CancelFunc)
		want   error
		within time.Duration
	}{
		{"it answers", func(table *Table, a *around, _ user, _ context.CancelFunc) {
			a.says("10.0.0.2", network.Neighbour{Known: true})
			_ = table.AskHops(false)
		}, nil, time.Second},
		{"it fails", func(table *Table, a *around, _ user, _ context.CancelFunc) {
			a.says("10.0.0.2", network.Neighbour{Failed: true})
			_ = table.AskHops(false)
		}, verbs.ErrUnreachable, time.Second},
		{"no response", func(*Table, *around, user, context.CancelFunc) {}, verbs.ErrUnreachable, NeighbourTimeout},
		{"the session ends", func(_ *Table, _ *around, u user, _ context.CancelFunc) { close(u.ended) }, verbs.ErrClosed, time.Second},
		{"the context ends", func(_ *Table, _ *around, _ user, cancel context.CancelFunc) { cancel() }, context.Canceled, time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table, a := newTable()
				a.says("10.0.0.2", network.Neighbour{})
				p, u := take(t, table, "10.0.0.2"), newUser(nil)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				go func() {
					time.Sleep(time.Second)
					row.after(table, a, u, cancel)
				}()
				if err := table.Await(ctx, p, u); row.want == nil {
					check(t, err)
				} else {
					refused(t, err, row.want)
				}
				if took := time.Since(began); took != row.within {
					t.Errorf("after %v, want %v", took, row.within)
				}
				time.Sleep(time.Minute) // no goroutine is left
			})
		})
	}
}

// A failed neighbour is queried again by the next Take of a path to it, and its old MAC stays in use meanwhile.
func TestNeighboursAreAskedAgain(t *testing.T) {
	table, a := newTable()
	a.says("10.0.0.2", network.Neighbour{Failed: true})
	take(t, table, "10.0.0.2")
	delete(a.neighbours, gid("10.0.0.2").Addr())
	p := take(t, table, "10.0.0.2")
	check(t, table.Await(t.Context(), p, newUser(nil)))
	a.says("10.0.0.2", network.Neighbour{Absent: true})
	check(t, table.AskHops(false))
	check(t, table.Await(t.Context(), p, newUser(nil)))
}
