// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/rc"
)

// A minimal server over connections: a goroutine per connection reads requests and responds with the same bytes. Each
// client has a connection, and waits for the response. All sleep while they wait. It is written with package net and
// with package rc.

var (
	rpcClients  = []int{1, 8, 32, 128}
	rpcSizes    = []int{8, 1024}
	rpcVariants = []string{"tcp", "rc", "rc" + overUDP}
)

// rpc measures each number of clients and each size.
func (b *bench) rpc() error {
	for _, size := range rpcSizes {
		for _, clients := range rpcClients {
			if err := b.requestTurns("rpc", size, load{clients: clients}, rpcVariants); err != nil {
				return err
			}
		}
	}
	return nil
}

func rpcPort(j harness.Job) netip.AddrPort {
	at := j.Peer.Address
	if j.Role == "serve" {
		at = j.Own.Address
	}
	return netip.AddrPortFrom(netip.MustParseAddr(at), connectionPort)
}

// echoTCP responds to the requests of a connection until it is closed.
func echoTCP(conn net.Conn, size int) {
	defer conn.Close()
	buffer := make([]byte, size)
	for {
		if _, err := io.ReadFull(conn, buffer); err != nil {
			return
		}
		if _, err := conn.Write(buffer); err != nil {
			return
		}
	}
}

func rpcServeTCP(j harness.Job) (r harness.Result, err error) {
	var listener net.Listener
	if err := hca.RunIn(j.Namespace, func() (err error) {
		listener, err = net.Listen("tcp", rpcPort(j).String())
		return err
	}); err != nil {
		return r, err
	}
	context.AfterFunc(harness.UntilStopped, func() { _ = listener.Close() })
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return r, err
	}
	meter := meterProcessor()
	for {
		conn, err := listener.Accept()
		if err != nil {
			meter(&r)
			return r, nil
		}
		go echoTCP(conn, j.Size)
	}
}

// tcpRequester is a requester with a TCP connection.
type tcpRequester struct {
	net.Conn
	buffer []byte
}

func (c *tcpRequester) roundTrip(request []byte) ([]byte, error) {
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	_, err := io.ReadFull(c, c.buffer)
	return c.buffer, err
}

func (c *tcpRequester) close() error { return c.Close() }

func rpcRequestTCP(j harness.Job) (harness.Result, error) {
	clients := make([]requester, j.Clients)
	for i := range clients {
		err := hca.RunIn(j.Namespace, func() error {
			conn, err := net.DialTimeout("tcp", rpcPort(j).String(), requestTimeout)
			clients[i] = &tcpRequester{conn, make([]byte, j.Size)}
			return err
		})
		if err != nil {
			return harness.Result{}, err
		}
	}
	return runClients(j, clients)
}

// echo responds to the requests of a connection until it is closed.
func echo(conn *rc.Conn) {
	defer conn.Close()
	for {
		m, err := conn.Recv(harness.UntilStopped)
		if err != nil {
			return
		}
		if err := conn.Send(harness.UntilStopped, m.Data); err != nil {
			return
		}
		m.Release()
	}
}

func rpcServe(j harness.Job) (r harness.Result, err error) {
	c, err := openContext(j)
	if err != nil {
		return r, err
	}
	listener, err := rc.Listen(c, rpcPort(j), rc.Options{})
	if err != nil {
		return r, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return r, err
	}
	meter := meterProcessor()
	var all sync.WaitGroup
	for {
		conn, err := listener.Accept(harness.UntilStopped)
		if err != nil {
			break
		}
		all.Go(func() { echo(conn) })
	}
	all.Wait()
	meter(&r)
	return r, errors.Join(listener.Close(), c.Close())
}

// rcRequester is a requester with a connection of package rc.
type rcRequester struct {
	*rc.Conn
	ctx    context.Context
	buffer []byte
}

func (c *rcRequester) roundTrip(request []byte) ([]byte, error) {
	if err := c.Send(c.ctx, request); err != nil {
		return nil, err
	}
	m, err := c.Recv(c.ctx)
	if err != nil {
		return nil, err
	}
	n := copy(c.buffer, m.Data)
	m.Release()
	return c.buffer[:n], nil
}

func (c *rcRequester) close() error { return c.Close() }

func rpcRequest(j harness.Job) (r harness.Result, err error) {
	c, err := openContext(j)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), j.Duration+requestTimeout+time.Duration(j.Clients)*100*time.Millisecond)
	defer cancel()
	clients := make([]requester, j.Clients)
	for i := range clients {
		conn, err := rc.DialAddr(ctx, c, rpcPort(j), rc.Options{})
		if err != nil {
			return r, err
		}
		clients[i] = &rcRequester{conn, ctx, make([]byte, j.Size)}
	}
	r, err = runClients(j, clients)
	return r, errors.Join(err, c.Close())
}
