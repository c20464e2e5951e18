// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/ud"
)

// TestFakeTime checks that in a bubble of testing/synctest a message takes exactly the delay of its network, a
// publisher has exactly its rate, and a call ends exactly at its deadline. It takes no real time.
func TestFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(1)
		var ends []*ud.Endpoint
		for i, texts := range [][]string{{"10.0.0.1"}, {"10.0.0.2"}} {
			host, err := network.AddHost([]string{"a", "b"}[i], addresses(texts...)...)
			check(t, err)
			card, err := hca.New(host)
			check(t, err)
			c, err := verbs.Open(card)
			check(t, err)
			end, err := ud.New(c, ud.Options{})
			check(t, err)
			ends = append(ends, end)
		}
		a, b := ends[0], ends[1]
		took := func(what string, want time.Duration, do func()) {
			t.Helper()
			start := time.Now()
			if do(); time.Since(start) != want {
				t.Errorf("%s took %v, want %v", what, time.Since(start), want)
			}
		}
		check(t, network.Impair(memnet.Impairment{Delay: time.Hour}))
		took("a message", time.Hour, func() {
			check(t, a.Send(t.Context(), b.LocalAddr(), []byte("hello")))
			m, err := b.Recv(t.Context())
			check(t, err)
			m.Release()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		took("a deadline", time.Minute, func() {
			_, err := b.Recv(ctx)
			refused(t, err, context.DeadlineExceeded)
		})
		check(t, errors.Join(a.Close(), b.Close(), network.Close()))
	})
}
