// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// Programs with package ud, for the comparison with bare verbs: the card, the depths and the sizes are the same.

// short contains the objects of a user of package ud.
type short struct {
	ctx      *verbs.Context
	endpoint *ud.Endpoint
	messages [64]ud.Message
}

func openShort(j harness.Job) (*short, error) {
	ctx, err := openContext(j)
	if err != nil {
		return nil, err
	}
	s := &short{ctx: ctx}
	spin := j.Variant == "ud inline"
	sends := depth
	if spin {
		sends = depth / 2 // like sendDepth
	}
	s.endpoint, err = ud.New(s.ctx, ud.Options{QKey: qkey, RecvDepth: depth, SendDepth: sends, MaxMessage: j.Size, Spin: spin})
	return s, err
}

func (s *short) close() error { return errors.Join(s.endpoint.Close(), s.ctx.Close()) }

func udAddr(e harness.Endpoint) (ud.Addr, error) {
	a, err := ud.ParseAddr(e.Address + ":" + verbs.QPN(e.QPN).String())
	a.QKey = qkey
	return a, err
}

// receive receives messages. It returns 0 when the parent stops the child.
func (s *short) receive() (int, error) {
	n, err := s.endpoint.RecvBatch(harness.UntilStopped, s.messages[:])
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return n, err
}

func shortReceive(j harness.Job) (harness.Result, error) {
	s, err := openShort(j)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{QPN: uint32(s.endpoint.LocalAddr().QPN)}); err != nil {
		return harness.Result{}, err
	}
	var m harness.Meter
	for !harness.Stopping.Load() {
		n, err := s.receive()
		if err != nil {
			return harness.Result{}, err
		}
		if n > 0 {
			m.Add(n)
			s.endpoint.Release(s.messages[:n])
		}
	}
	return m.Result(), s.close()
}

func shortSend(j harness.Job) (harness.Result, error) {
	s, err := openShort(j)
	if err != nil {
		return harness.Result{}, err
	}
	peer, err := udAddr(j.Peer)
	if err != nil {
		return harness.Result{}, err
	}
	data := make([]byte, j.Size)
	for i := range batch {
		s.messages[i] = ud.Message{To: peer, Data: data}
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	var m harness.Meter
	for start := time.Now(); time.Since(start) < j.Duration; m.Add(batch) {
		if _, err := s.endpoint.SendBatch(context.Background(), s.messages[:batch]); err != nil {
			return harness.Result{}, err
		}
	}
	return m.Result(), s.close()
}

func shortPong(j harness.Job) (harness.Result, error) {
	s, err := openShort(j)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{QPN: uint32(s.endpoint.LocalAddr().QPN)}); err != nil {
		return harness.Result{}, err
	}
	for !harness.Stopping.Load() {
		n, err := s.receive()
		if err != nil {
			return harness.Result{}, err
		}
		for i := range s.messages[:n] {
			s.messages[i].To = s.messages[i].From
		}
		if _, err := s.endpoint.SendBatch(context.Background(), s.messages[:n]); err != nil {
			return harness.Result{}, err
		}
		s.endpoint.Release(s.messages[:n])
	}
	return harness.Result{}, s.close()
}

func shortPing(j harness.Job) (harness.Result, error) {
	s, err := openShort(j)
	if err != nil {
		return harness.Result{}, err
	}
	peer, err := udAddr(j.Peer)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	data := make([]byte, j.Size)
	r := measureTrips(j.Count, func() bool {
		if err := s.endpoint.Send(context.Background(), peer, data); err != nil {
			return false
		}
		n, _ := s.receive()
		s.endpoint.Release(s.messages[:n])
		return n > 0
	})
	return r, s.close()
}
