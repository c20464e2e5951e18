// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
)

// udaddy is a case with the unmodified udaddy of rdma-core. A client resolves the server's queue pair number, sends
// messages to it, and receives as many. The immediate data of each message is the sender's QPN.
type udaddy struct {
	ipv6   bool
	client bool // roced is the client
}

const (
	udaddyPort  = 7174
	udaddyCount = 3
	udaddySize  = 64 // bytes
)

func udaddyCases() (cases []testCase) {
	for _, ipv6 := range []bool{false, true} {
		for _, client := range []bool{true, false} {
			name := "connection ids, udaddy the server, "
			if !client {
				name = "connection ids, udaddy the client, "
			}
			cases = append(cases, testCase{name: name + family(ipv6), run: udaddy{ipv6, client}.run})
		}
	}
	return cases
}

func (u udaddy) run(ctx context.Context, l *testbed) (detail string, err error) {
	s, err := l.newStation()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	channel, err := cm.CreateEventChannel(s.Context)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, channel.Close()) }()
	play := u.asServer
	if u.client {
		play = u.asClient
	}
	peer, err := play(ctx, l, s, channel)
	if err != nil {
		return "", err
	}
	if said, err := peer.Wait(); err != nil || !strings.Contains(said, "return status 0") {
		return "", fmt.Errorf("the peer's udaddy (%w):\n%s", err, tail(said))
	}
	return fmt.Sprintf("%d messages of %d bytes each way", udaddyCount, udaddySize), nil
}

// asClient runs roced's side as the client.
func (u udaddy) asClient(ctx context.Context, l *testbed, s *station, channel *cm.EventChannel) (_ *job.Job, err error) {
	to := ends(u.ipv6).peer
	server := l.peer.Start(ctx, fmt.Sprintf("udaddy -b %v -C %d -S %d 2>&1", to, udaddyCount, udaddySize))
	id, answer, err := u.connect(ctx, s, channel, netip.AddrPortFrom(to, udaddyPort))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(id)) }()
	if err := s.sendNumbered(ctx, answer); err != nil {
		return nil, err
	}
	_, err = s.receiveNumbered(ctx, answer.QPN)
	return server, err
}

// connect retries until the peer listens, since the program does not report when it does.
func (u udaddy) connect(ctx context.Context, s *station, channel *cm.EventChannel, to netip.AddrPort) (*cm.ID, *cm.Event, error) {
	for {
		id, err := channel.CreateID(cm.PortSpaceUDP, nil)
		if err != nil {
			return nil, nil, err
		}
		event, err := s.connect(ctx, channel, id, to)
		if err == nil && event.Type == cm.EventEstablished {
			return id, event, nil
		}
		if err == nil && event.Status != 1 { // not "no listener"
			err = event.Err()
		}
		if err = errors.Join(err, s.end(id)); err != nil {
			return nil, nil, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// connect sends the request of an id, and returns the event of the response.
func (s *station) connect(ctx context.Context, channel *cm.EventChannel, id *cm.ID, to netip.AddrPort) (*cm.Event, error) {
	if err := id.ResolveAddr(netip.AddrPort{}, to, 5*time.Second); err != nil {
		return nil, err
	}
	if _, err := channel.Expect(ctx, cm.EventAddrResolved); err != nil {
		return nil, err
	}
	if err := id.ResolveRoute(); err != nil {
		return nil, err
	}
	if _, err := channel.Expect(ctx, cm.EventRouteResolved); err != nil {
		return nil, err
	}
	if err := errors.Join(s.begin(id), id.Connect(nil)); err != nil {
		return nil, err
	}
	return channel.Get(ctx)
}

// asServer runs roced's side as the server.
func (u udaddy) asServer(ctx context.Context, l *testbed, s *station, channel *cm.EventChannel) (client *job.Job, err error) {
	id, err := channel.CreateID(cm.PortSpaceUDP, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, id.Close()) }()
	own := netip.AddrPortFrom(ends(u.ipv6).host, udaddyPort)
	if err := errors.Join(id.Bind(own), id.Listen(1)); err != nil {
		return nil, err
	}
	client = l.peer.Start(ctx, fmt.Sprintf("udaddy -s %v -C %d -S %d 2>&1", own.Addr(), udaddyCount, udaddySize))
	asked, err := channel.Expect(ctx, cm.EventConnectRequest)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(asked.ID)) }()
	if err := errors.Join(s.begin(asked.ID), asked.ID.Accept(&cm.ConnParam{})); err != nil {
		return nil, err
	}
	if asked.QPN, err = s.receiveNumbered(ctx, 0); err != nil {
		return nil, err
	}
	asked.QKey = verbs.UDPQKey
	return client, s.sendNumbered(ctx, asked)
}

// begin creates the queue pair of an id, and makes it the station's.
func (s *station) begin(id *cm.ID) (err error) {
	s.qp, err = id.CreateQP(s.pd, &verbs.QPInitAttr{SendCQ: s.cq, RecvCQ: s.cq, Cap: verbs.QPCap{MaxSendWR: stationDepth, MaxRecvWR: stationDepth}})
	if err != nil {
		return err
	}
	return s.postRecvs(udaddyCount, stationBuffer)
}

// end closes an id.
func (s *station) end(id *cm.ID) error {
	if id.QP() == nil {
		return id.Close()
	}
	return errors.Join(id.DestroyQP(), id.Close())
}

// sendNumbered sends messages with the sender's QPN as immediate data to the queue pair of an event.
func (s *station) sendNumbered(ctx context.Context, to *cm.Event) error {
	ah, err := s.pd.CreateAH(ctx, &to.AH)
	for k := 0; k < udaddyCount && err == nil; k++ {
		wr := verbs.SendWR{Opcode: verbs.WRSendWithImm, ImmData: uint32(s.qp.Number()), AH: ah, RemoteQPN: to.QPN, RemoteQKey: to.QKey}
		err = s.send(ctx, wr, make([]byte, udaddySize))
	}
	return err
}

// receiveNumbered receives such messages, checks their source if from is known, and returns the source QPN.
func (s *station) receiveNumbered(ctx context.Context, from verbs.QPN) (verbs.QPN, error) {
	got, err := s.receive(ctx, udaddyCount)
	if err != nil {
		return 0, errors.Join(err, s.dropError())
	}
	for _, m := range got {
		if len(m.data) != udaddySize || m.imm != uint32(m.source) || from != 0 && m.source != from {
			return 0, fmt.Errorf("message from QP %v (want %v) of %d bytes with immediate data 0x%x", m.source, from, len(m.data), m.imm)
		}
	}
	return got[0].source, nil
}
