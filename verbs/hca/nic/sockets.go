// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs/hca/network"
)

// sockets holds a card's AF_XDP sockets. They follow the interface while the card is open: each receive queue has one,
// and each has chunks for the largest RDMA MTU that the interface has had. Each of n workers has a link with the
// sockets of every n-th queue.
//
//	queue without socket    Prepare ─► Bind ─► SetRing ─► Add           cover
//	queue that has gone     ClearRings ─► Drain ─► Remove ─► Close      retire
//	chunks too small        Prepare ─► retire ─► Bind ─► SetRing ─► Add replace
//	worker without a queue  SendApart, until Add                        sendApart
//
// Packets that meanwhile arrive on a queue without socket are dropped and counted (drop_no_ring); packets to send wait
// in their queue pair.
//
// Only one goroutine at a time changes them; mu is for concurrent queries of the mode.
type sockets struct {
	plan     *socketPlan
	inside   *host.Namespace // where sockets are opened
	steering *bpf.Steering
	links    []*link.XDP // of the workers
	log      *slog.Logger
	engine   network.Engine // nil until the card has started
	carries  []wire.MTU     // by queue
	carried  wire.MTU       // by all
	most     wire.MTU       // up to which they can be replaced
	steered  int            // queues on which the XDP program runs
	lost     error          // a queue has no socket
	refused  int            // the interface's MTU for which larger chunks could not be opened
	stuck    error          // the reason for that

	mu     sync.Mutex
	queues []*xsk.Socket // by queue; nil without a socket
}

// newSockets takes over the sockets that Open has opened.
func newSockets(s *sockets, opened []*xsk.Socket) *sockets {
	s.queues, s.steered = slices.Clone(opened), len(opened)
	for range opened {
		s.carries = append(s.carries, s.carried)
	}
	return s
}

// mode returns the way in which frames get into the sockets' memory.
func (s *sockets) mode() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.queues[0]; first != nil && first.Attached().ZeroCopy {
		return socketZeroCopy
	}
	return socketCopy
}

// SetFrames sets Config.Frames for sockets that are opened from now on. Its caller is that of Port.
func (i *Interface) SetFrames(frames uint32) { i.sockets.plan.frames = frames }

// prepare opens a socket for a queue, except for the binding.
func (s *sockets) prepare(queue int, mtu wire.MTU) (socket *xsk.Socket, err error) {
	err = s.inside.Do(func() (err error) {
		if socket, err = xsk.Prepare(s.plan.config(queue, len(s.queues), mtu)); err == nil {
			err = s.inside.Check(socket.FD())
		}
		return err
	})
	if err != nil && socket != nil {
		err = errors.Join(err, socket.Close())
	}
	return socket, err
}

// fit adapts the sockets to the interface, which uses count receive queues (0: unknown). While the interface is down no
// socket can be bound. Problems are reported in the port's Lost and Stuck.
func (s *sockets) fit(p *network.Port, now channels) {
	if s.engine != nil && p.Enabled {
		count := cmp.Or(now.receive, len(s.queues))
		tooMany := checkQueues(p.Name, count)
		count = min(count, maxQueues)
		if was := len(s.queues); was != count {
			s.log.Info("number of receive queues changed", "device", p.Name, "was", was, "now", count)
		}
		s.resize(count)
		s.lost = errors.Join(tooMany, s.checkSending(now.send), s.cover(), s.steer())
		s.sendApart()
		s.enlarge(p.MTU)
	}
	p.Carried, p.Most, p.Lost, p.Stuck = s.carried, s.most, s.lost, s.stuck
}

// resize makes room for the sockets of count queues, and closes those of further queues.
func (s *sockets) resize(count int) {
	var gone []int
	for queue := count; queue < len(s.queues); queue++ {
		gone = append(gone, queue)
	}
	s.retire(gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queues) < count {
		s.queues, s.carries = append(s.queues, nil), append(s.carries, 0)
	}
	s.queues, s.carries = s.queues[:count], s.carries[:count]
}

// cover opens sockets for queues without one.
func (s *sockets) cover() error {
	for queue, socket := range s.queues {
		if socket != nil {
			continue
		}
		socket, err := s.prepare(queue, s.carried)
		if err == nil {
			err = s.install(queue, socket, s.carried)
		}
		if err != nil {
			return fmt.Errorf("queue %d of %d has no AF_XDP socket, and its packets are lost: %w", queue, len(s.queues), err)
		}
	}
	return nil
}

// steer makes the XDP program run on all queues.
func (s *sockets) steer() error {
	s.steered = min(s.steered, len(s.queues))
	if s.steered == len(s.queues) {
		return nil
	}
	err := s.steering.Renew()
	if err == nil {
		s.steered = len(s.queues)
	}
	return err
}

// install binds a prepared socket to its queue and adds it to the card, or closes it.
func (s *sockets) install(queue int, socket *xsk.Socket, mtu wire.MTU) error {
	err := socket.Bind()
	if err == nil {
		err = s.steering.SetRing(queue, socket.FD())
	}
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	s.endApart(queue)
	s.engine.ChangeLink(func() { s.linkOf(queue).Add(socket) })
	s.put(queue, socket, mtu)
	return nil
}

// put stores the socket of a queue, or nil.
func (s *sockets) put(queue int, socket *xsk.Socket, mtu wire.MTU) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[queue], s.carries[queue] = socket, mtu
}

// drainTimeout is the maximum time for which retired sockets may continue to send.
const drainTimeout = time.Second

// retire removes the sockets of some queues and closes them. Their received packets are delivered before, and their
// packets to send have left, or are counted as lost.
func (s *sockets) retire(queues []int) {
	if len(queues) == 0 {
		return
	}
	if err := s.steering.ClearRings(queues...); err != nil {
		s.log.Error("cannot take a queue out of the steering table", "device", s.plan.name, "error", err)
	}
	var retired []*xsk.Socket
	for _, queue := range queues {
		if socket := s.queues[queue]; socket != nil {
			retired = append(retired, socket)
		}
	}
	s.engine.Until(func() bool { return s.drained(retired) }, drainTimeout)
	s.engine.ChangeLink(func() {
		for _, socket := range retired {
			s.linkOf(socket.Attached().Queue).Remove(socket)
		}
	})
	for _, queue := range queues {
		s.put(queue, nil, 0)
	}
	for _, socket := range retired {
		if err := socket.Close(); err != nil {
			s.log.Error("cannot close a socket", "device", s.plan.name, "error", err)
		}
	}
}

// drained reports whether sockets are empty. The caller holds the engine's lease.
func (s *sockets) drained(list []*xsk.Socket) bool {
	empty := true
	for _, socket := range list {
		empty = s.linkOf(socket.Attached().Queue).Drain(socket) && empty
	}
	return empty
}
