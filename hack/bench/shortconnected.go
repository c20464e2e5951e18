// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
)

// Programs with package rc, for the comparison with bare verbs: the card, the depths and the sizes are the same.

// shortConnected contains the objects of a user of package rc: connections, and one region for all.
type shortConnected struct {
	ctx      *verbs.Context
	domain   *rc.Domain
	region   *rc.Region
	conns    []*rc.Conn
	there    rc.RemoteRegion
	messages [64]rc.Message
}

// introduction is the information that the two sides exchange.
type introduction struct {
	Addresses []rc.QPAddr
	Region    rc.RemoteRegion
}

// openShortConnected opens the connections, and connects them to the peer's by an exchange over TCP.
func openShortConnected(j harness.Job, server bool) (s *shortConnected, err error) {
	s = &shortConnected{}
	if s.ctx, err = openContext(j); err != nil {
		return nil, err
	}
	if s.domain, err = rc.NewDomain(s.ctx, rc.DomainOptions{}); err != nil {
		return nil, err
	}
	access := verbs.AccessRemoteWrite | verbs.AccessRemoteRead
	if s.region, err = s.domain.NewRegion(max(j.Size*bulkDepth, 1<<16), access); err != nil {
		return nil, err
	}
	own := introduction{Region: s.region.Remote()}
	for range max(j.QueuePairs, 1) {
		o := rc.Options{Domain: s.domain, SendDepth: bulkDepth, RecvDepth: 2 * bulkDepth, MaxMessage: j.Size, Spin: true}
		if j.Size == bulk {
			o.RecvInto, err = s.domain.NewRegion(bulk, 0) // one buffer for all messages, as with bare verbs
		}
		if err != nil {
			return nil, err
		}
		conn, err := rc.New(s.ctx, o)
		if err != nil {
			return nil, err
		}
		s.conns, own.Addresses = append(s.conns, conn), append(own.Addresses, conn.LocalQP())
	}
	peer, err := meet(j, server, own)
	if err != nil {
		return nil, err
	}
	s.there = peer.Region
	for i, conn := range s.conns {
		if err := conn.Connect(peer.Addresses[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *shortConnected) close() (err error) {
	for _, conn := range s.conns {
		err = errors.Join(err, conn.Close())
	}
	return errors.Join(err, s.domain.Close(), s.ctx.Close())
}

// shortConnectedReceive is the responder of shortConnectedSend.
func shortConnectedReceive(j harness.Job) (harness.Result, error) {
	s, err := openShortConnected(j, true)
	if err != nil {
		return harness.Result{}, err
	}
	for !harness.Stopping.Load() {
		for _, conn := range s.conns {
			n, err := conn.Poll(s.messages[:])
			if err != nil {
				return harness.Result{}, err
			}
			conn.Release(s.messages[:n])
		}
	}
	return harness.Result{}, s.close()
}

// shortConnectedSend executes SENDs, WRITEs or READs at the maximum rate, and counts packets.
func shortConnectedSend(j harness.Job) (harness.Result, error) {
	s, err := openShortConnected(j, false)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	opcodes := map[string]verbs.Opcode{
		"short send": verbs.WRSend, "short write": verbs.WRRDMAWrite, "short read": verbs.WRRDMARead,
	}
	requests, opcode := make([]rc.Request, bulkDepth/4), opcodes[j.Variant]
	for i := range requests {
		requests[i] = rc.Request{Opcode: opcode, Region: s.region, Length: j.Size, Remote: s.there}
	}
	var m harness.Meter
	for start := time.Now(); time.Since(start) < j.Duration; {
		all := uint64(0)
		for _, conn := range s.conns {
			done, _, err := conn.Completed()
			if err != nil {
				return harness.Result{}, err
			}
			if _, err := conn.TryPost(requests); err != nil && !errors.Is(err, verbs.ErrQueueFull) {
				return harness.Result{}, err
			}
			all += done
		}
		if packets := all * uint64(j.Size/j.MTU); packets > m.Messages {
			m.Add(int(packets - m.Messages))
		}
	}
	return m.Result(), s.close()
}

// shortConnectedPing and shortConnectedPong exchange messages one at a time.
func shortConnectedPing(j harness.Job) (harness.Result, error) {
	s, err := openShortConnected(j, false)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	data := make([]byte, j.Size)
	var failed error
	r := measureTrips(j.Count, func() bool {
		if failed == nil {
			failed = s.conns[0].Send(context.Background(), data)
		}
		if failed == nil {
			failed = s.await()
		}
		return failed == nil
	})
	return r, errors.Join(failed, s.close())
}

func shortConnectedPong(j harness.Job) (harness.Result, error) {
	s, err := openShortConnected(j, true)
	if err != nil {
		return harness.Result{}, err
	}
	data := make([]byte, j.Size)
	for err == nil && !harness.Stopping.Load() {
		if err = s.await(); err == nil && !harness.Stopping.Load() {
			err = s.conns[0].Send(context.Background(), data)
		}
	}
	return harness.Result{}, errors.Join(err, s.close())
}

// await receives a message, or returns when the parent stops the child.
func (s *shortConnected) await() error {
	n, err := s.conns[0].RecvBatch(harness.UntilStopped, s.messages[:1])
	s.conns[0].Release(s.messages[:n])
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
