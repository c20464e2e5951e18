// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
)

// idProgram is an unmodified program of rdma-core that uses connection ids, and roced's side of its exchange.
type idProgram struct {
	server, client     string // the peer's command in this role; %v is the address of the server
	port               uint16
	mtu                int                                       // MTU of the link
	private            func(e *idEnd) []byte                     // roced's private data
	asServer, asClient func(ctx context.Context, e *idEnd) error // roced's side as the server and as the client
	output             string                                    // output of the program on success, if its exit code is always 0
	shows              string                                    // description of the exchanged data
}

// idEnd is roced's end of a connection.
type idEnd struct {
	*station
	domain *rc.Domain
	region *rc.Region // the peer can read and write it
	conn   *rc.Conn
}

// maxConnected is the maximum number of messages that the peer sends without waiting.
const maxConnected = 16

func idProgramCases() (cases []testCase) {
	for _, p := range idPrograms {
		for _, ipv6 := range []bool{false, true} {
			cases = append(cases, p.testCase("the server", p.server, ipv6, p.runClient), p.testCase("the client", p.client, ipv6, p.runServer))
		}
	}
	return cases
}

// badWireCases returns cases with a wire that loses packets, which both ends must tolerate.
func badWireCases() (cases []testCase) {
	for _, p := range []idProgram{newRping(20, 60_000, 0), newRstream(100_000, 0)} {
		cases = append(cases, p.testCase("the server", p.server, false, p.runClient), p.testCase("the client", p.client, false, p.runServer))
	}
	for i := range cases {
		cases[i].name += ", over a bad wire"
		cases[i].bad = true
	}
	return cases
}

// testCase returns a case in which the peer runs a command and roced is the other end.
func (p *idProgram) testCase(role, command string, ipv6 bool, be func(context.Context, *testbed, *idEnd, bool) (*job.Job, error)) testCase {
	program, _, _ := strings.Cut(command, " ")
	return testCase{
		name: fmt.Sprintf("connections, %s %s, %s, %s", program, role, p.shows, family(ipv6)), mtu: p.mtu,
		run: func(ctx context.Context, l *testbed) (string, error) {
			return p.run(ctx, l, func(e *idEnd) (*job.Job, error) { return be(ctx, l, e, ipv6) })
		},
	}
}

func (p *idProgram) run(ctx context.Context, l *testbed, play func(*idEnd) (*job.Job, error)) (detail string, err error) {
	e := &idEnd{}
	if e.station, err = l.newStation(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if e.domain, err = rc.NewDomain(e.Context, rc.DomainOptions{}); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.domain.Close()) }()
	if e.region, err = e.domain.NewRegion(1<<17, verbs.AccessRemoteRead|verbs.AccessRemoteWrite); err != nil {
		return "", err
	}
	peer, err := play(e)
	if e.conn != nil {
		err = errors.Join(err, e.conn.Close())
	}
	if err != nil {
		return "", errors.Join(err, e.dropError())
	}
	if said, err := peer.Wait(); err != nil || !strings.Contains(said, p.output) {
		return "", fmt.Errorf("the peer's program (%v):\n%s", err, tail(said))
	}
	return "both ends succeeded", nil
}

// options returns the options of the connection.
func (p *idProgram) options(e *idEnd) rc.Options {
	o := rc.Options{Domain: e.domain, RecvDepth: maxConnected, SendDepth: stationDepth, MaxMessage: stationBuffer}
	if p.private != nil {
		o.PrivateData = p.private(e)
	}
	return o
}

// runClient starts the peer's server and runs roced's side as the client.
func (p *idProgram) runClient(ctx context.Context, l *testbed, e *idEnd, ipv6 bool) (*job.Job, error) {
	to := netip.AddrPortFrom(ends(ipv6).peer, p.port)
	server := l.peer.Start(ctx, fmt.Sprintf(p.server, to.Addr()))
	if err := e.connect(ctx, to, p.options(e)); err != nil {
		return nil, err
	}
	if err := p.asClient(ctx, e); err != nil {
		return nil, err
	}
	return server, nil
}

// runServer starts the peer's client and runs roced's side as the server.
func (p *idProgram) runServer(ctx context.Context, l *testbed, e *idEnd, ipv6 bool) (client *job.Job, err error) {
	own := netip.AddrPortFrom(ends(ipv6).host, p.port)
	service, err := rc.Listen(e.Context, own, p.options(e))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	client = l.peer.Start(ctx, fmt.Sprintf(p.client, own.Addr()))
	if e.conn, err = service.Accept(ctx); err != nil {
		return nil, err
	}
	return client, p.asServer(ctx, e)
}

// connect retries until the peer listens, since the program does not report when it does.
func (e *idEnd) connect(ctx context.Context, to netip.AddrPort, o rc.Options) (err error) {
	const invalidServiceID = 8 // reason of a REJ: invalid service ID
	for {
		e.conn, err = rc.DialAddr(ctx, e.Context, to, o)
		var rejected *rc.RejectedError
		if !errors.As(err, &rejected) || rejected.Reason != invalidServiceID {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// receiveLength receives a message, checks its length, and returns a copy.
func (e *idEnd) receiveLength(ctx context.Context, length int) ([]byte, error) {
	m, err := e.conn.Recv(ctx)
	if err != nil {
		return nil, err
	}
	defer m.Release()
	if m.Length != length {
		return nil, fmt.Errorf("got a message of %d bytes, want %d", m.Length, length)
	}
	return slices.Clone(m.Data), nil
}

// disconnected waits until the peer has closed the connection.
func (e *idEnd) disconnected(ctx context.Context) error {
	for {
		m, err := e.conn.Recv(ctx)
		if errors.Is(err, rc.ErrDisconnected) {
			return nil
		}
		if err != nil {
			return err
		}
		m.Release()
	}
}
