// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// listenUD opens count endpoints on one card.
func listenUD(j harness.Job, count int) (*verbs.Context, []*ud.Endpoint, error) {
	c, err := openContext(j)
	if err != nil {
		return nil, nil, err
	}
	endpoints := make([]*ud.Endpoint, count)
	for i := range endpoints {
		if endpoints[i], err = ud.New(c, ud.Options{QKey: qkey}); err != nil {
			return nil, nil, err
		}
	}
	return c, endpoints, nil
}

func udServe(j harness.Job) (harness.Result, error) {
	c, endpoints, err := listenUD(j, 1)
	if err != nil {
		return harness.Result{}, err
	}
	e := endpoints[0]
	if err := harness.Announce(harness.Endpoint{QPN: uint32(e.LocalAddr().QPN)}); err != nil {
		return harness.Result{}, err
	}
	values, buffer, meter := newStore(j.Size), make([]byte, 2048), meterProcessor()
	for {
		m, err := e.Recv(harness.UntilStopped)
		if errors.Is(err, context.Canceled) {
			break
		}
		if err != nil {
			return harness.Result{}, err
		}
		n := copy(buffer, m.Data)
		if err := m.Reply(harness.UntilStopped, values.answer(buffer[:n])); err != nil {
			return harness.Result{}, err
		}
		m.Release()
	}
	var r harness.Result
	meter(&r)
	return r, errors.Join(e.Close(), c.Close())
}

// udClient is a requester with an endpoint of package ud.
type udClient struct {
	ctx      context.Context
	endpoint *ud.Endpoint
	server   ud.Addr
	buffer   [2048]byte
}

func (c *udClient) roundTrip(request []byte) ([]byte, error) {
	if err := c.endpoint.Send(c.ctx, c.server, request); err != nil {
		return nil, err
	}
	m, err := c.endpoint.Recv(c.ctx)
	if err != nil {
		return nil, err
	}
	n := copy(c.buffer[:], m.Data)
	m.Release()
	return c.buffer[:n], nil
}

func (c *udClient) close() error { return c.endpoint.Close() }

func udRequest(j harness.Job) (harness.Result, error) {
	c, endpoints, err := listenUD(j, j.Clients)
	if err != nil {
		return harness.Result{}, err
	}
	server, err := udAddr(j.Peer)
	if err != nil {
		return harness.Result{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), j.Duration+requestTimeout)
	defer cancel()
	clients := make([]requester, len(endpoints))
	for i, e := range endpoints {
		clients[i] = &udClient{ctx: ctx, endpoint: e, server: server}
	}
	r, err := runClients(j, clients)
	return r, errors.Join(err, c.Close())
}
