package main

import (
	"context"
	"errors"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// Package ud compared with bare verbs: the same card, the same depths, the same sizes.

// short is what a user of package ud has.
type short struct {
	ctx      *verbs.Context
	endpoint *ud.Endpoint
	messages [64]ud.Message
}

func openShort(j job) (*short, error) {
	device, err := openCard(j)
	if err != nil {
		return nil, err
	}
	s := &short{}
	if s.ctx, err = verbs.Open(device); err != nil {
		return nil, err
	}
	spin := j.Variant == "ud inline"
	sends := depth
	if spin {
		sends = depth / 2 // as sendDepth
	}
	s.endpoint, err = ud.Listen(s.ctx, ud.Options{QKey: qkey, RecvDepth: depth, SendDepth: sends, MaxMessage: j.Size, Spin: spin})
	return s, err
}

func (s *short) close() error { return errors.Join(s.endpoint.Close(), s.ctx.Close()) }

func (e endpoint) addr() (ud.Addr, error) {
	a, err := ud.ParseAddr(e.Address + ":" + verbs.QPN(e.QPN).String())
	a.QKey = qkey
	return a, err
}

// receive takes messages, none when the parent says stop.
func (s *short) receive() (int, error) {
	n, err := s.endpoint.RecvBatch(untilStopped, s.messages[:])
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return n, err
}

func shortReceive(j job) (result, error) {
	s, err := openShort(j)
	if err != nil {
		return result{}, err
	}
	if err := announce(endpoint{QPN: uint32(s.endpoint.Addr().QPN)}); err != nil {
		return result{}, err
	}
	var m meter
	for !stopping.Load() {
		n, err := s.receive()
		if err != nil {
			return result{}, err
		}
		if n > 0 {
			m.add(n)
			s.endpoint.Release(s.messages[:n])
		}
	}
	return m.result(), s.close()
}

func shortSend(j job) (result, error) {
	s, err := openShort(j)
	if err != nil {
		return result{}, err
	}
	peer, err := j.Peer.addr()
	if err != nil {
		return result{}, err
	}
	data := make([]byte, j.Size)
	for i := range batch {
		s.messages[i] = ud.Message{To: peer, Data: data}
	}
	if err := announce(endpoint{}); err != nil {
		return result{}, err
	}
	var m meter
	for start := time.Now(); time.Since(start) < j.Duration; m.add(batch) {
		if _, err := s.endpoint.SendBatch(context.Background(), s.messages[:batch]); err != nil {
			return result{}, err
		}
	}
	return m.result(), s.close()
}

func shortPong(j job) (result, error) {
	s, err := openShort(j)
	if err != nil {
		return result{}, err
	}
	if err := announce(endpoint{QPN: uint32(s.endpoint.Addr().QPN)}); err != nil {
		return result{}, err
	}
	for !stopping.Load() {
		n, err := s.receive()
		if err != nil {
			return result{}, err
		}
		for i := range s.messages[:n] {
			s.messages[i].To = s.messages[i].From
		}
		if _, err := s.endpoint.SendBatch(context.Background(), s.messages[:n]); err != nil {
			return result{}, err
		}
		s.endpoint.Release(s.messages[:n])
	}
	return result{}, s.close()
}

func shortPing(j job) (result, error) {
	s, err := openShort(j)
	if err != nil {
		return result{}, err
	}
	peer, err := j.Peer.addr()
	if err != nil {
		return result{}, err
	}
	if err := announce(endpoint{}); err != nil {
		return result{}, err
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
