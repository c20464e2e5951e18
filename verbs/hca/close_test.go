// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
)

// makes returns all calls that a closed card refuses, except those that free.
func (s *station) makes(t *testing.T, peer *station, ah *verbs.AH, route *verbs.AHAttr) map[string]func() error {
	var wcs [1]verbs.WC
	return map[string]func() error{
		"QueryDevice": func() error { _, err := s.ctx.QueryDevice(); return err },
		"QueryPort":   func() error { _, err := s.ctx.QueryPort(1); return err },
		"QueryPKey":   func() error { _, err := s.ctx.QueryPKey(1, 0); return err },
		"AllocPD":     func() error { _, err := s.ctx.AllocPD(); return err },
		"CreateCQ":    func() error { _, err := s.ctx.CreateCQ(1); return err },
		"AllocMR":     func() error { _, err := s.pd.AllocMR(1, 0); return err },
		"RegMR":       func() error { _, err := s.pd.RegMR(make([]byte, 1), 0); return err },
		"CreateAH":    func() error { _, err := s.pd.CreateAH(context.Background(), route); return err },
		"CreateQP": func() error {
			_, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq})
			return err
		},
		"QueryGIDTable": func() error { _, err := s.ctx.QueryGIDTable(1); return err },
		"Modify":        func() error { return s.qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState) },
		"reset":         func() error { return s.qp.Modify(&verbs.QPAttr{}, verbs.QPAttrState) },
		"Query":         func() error { _, _, err := s.qp.Query(); return err },
		"PostSend":      func() error { return s.qp.PostSend([]verbs.SendWR{s.send(1, ah, peer)}) },
		"PostRecv":      func() error { return s.qp.PostRecv([]verbs.RecvWR{{}}) },
		"Poll":          func() error { _, err := s.cq.Poll(wcs[:]); return err },
		"Wait":          func() error { _, err := s.cq.Wait(guard(t), wcs[:]); return err },
		"AttachMcast":   func() error { return s.qp.AttachMcast(gid(groupV4), 0) },
		"full join":     func() error { _, err := s.ctx.JoinMulticast(address(groupV4), verbs.JoinFullMember); return err },
		"send-only join": func() error {
			_, err := s.ctx.JoinMulticast(address(groupV4), verbs.JoinSendOnlyFullMember)
			return err
		},
		"GetAsyncEvent": func() error { _, err := s.ctx.GetAsyncEvent(guard(t)); return err },
	}
}

// waiting counts the goroutines blocked in a function: in a select, or as a leader on a descriptor or a channel.
func waiting(function string) (n int) {
	stacks := make([]byte, 64<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, one := range strings.Split(string(stacks), "\n\n") {
		asleep := strings.Contains(one, "[select") || strings.Contains(one, "[IO wait") || strings.Contains(one, "[chan receive")
		if asleep && strings.Contains(one, function) {
			n++
		}
	}
	return n
}

// Statistics can be read while a card is closed under load, and afterwards.
func TestStatisticsWhileClosing(t *testing.T) {
	for range 10 {
		w := newWirePair(t)
		a, ah := w.a, w.a.ah("10.0.0.2")
		stop, done := make(chan struct{}), make(chan error)
		go func() {
			for !isClosed(stop) {
				if _, err := a.device.Statistics(); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for range 100 {
			a.post(a.send(1, ah, w.b))
			a.wait(1)
		}
		check(t, a.ctx.Close())
		close(stop)
		check(t, <-done)
		statistics, err := a.device.Statistics()
		check(t, err)
		if statistics.Engine.Sent != 100 {
			t.Errorf("%v", statistics)
		}
	}
}

// Opening and closing leaks no goroutine; TestMain checks the descriptors.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		a, b, err := OpenPair(addressesA, addressesB)
		check(t, err)
		check(t, errors.Join(a.Close(), b.Close()))
	}
	quietGoroutines(t, before)
}

func TestOpenPairRefuses(t *testing.T) {
	before := runtime.NumGoroutine()
	_, _, err := OpenPair(addressesA, addressesB, WithMTU(6))
	refused(t, err, verbs.ErrInvalid, "MTU256 (1) to MTU4096 (5)")
	quietGoroutines(t, before)
}
