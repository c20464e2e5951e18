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

// sockets are a card's AF_XDP sockets. They follow the interface while the card is open: each receive
// queue has one, and each has chunks for the largest RDMA MTU that the interface has had. Of n workers each has a link
// with the sockets of every n-th queue.
//
//	queue without socket    Prepare ─► Bind ─► SetRing ─► Add           cover
//	queue that has gone     ClearRings ─► Drain ─► Remove ─► Close      retire
//	chunks too small        Prepare ─► retire ─► Bind ─► SetRing ─► Add replace
//	worker without a queue  SendApart, until Add                        sendApart
//
// What arrives in between for a queue without socket is dropped and counted (drop_no_ring); what is to
// be sent meanwhile waits in its queue pair.
//
// One at a time fits them; mu is for those who ask for the mode meanwhile.
type sockets struct {
	plan     *socketPlan
	inside   *host.Namespace // where sockets are opened
	steering *bpf.Steering
	links    []*link.XDP // of the workers
	log      *slog.Logger
	engine   network.Engine // nil until the card has started
	carries  []wire.MTU     // by queue
	carried  wire.MTU       // by all
	most     wire.MTU       // that they can be replaced for
	steered  int            // queues that the XDP program runs on
	lost     error          // a queue has no socket
	refused  int            // the interface's MTU for which larger chunks could not be had
	stuck    error          // why not

	mu     sync.Mutex
	queues []*xsk.Socket // by queue; nil where there is none
}

// newSockets takes the sockets that Open has opened.
func newSockets(s *sockets, opened []*xsk.Socket) *sockets {
	s.queues, s.steered = slices.Clone(opened), len(opened)
	for range opened {
		s.carries = append(s.carries, s.carried)
	}
	return s
}

// mode names how frames get into the sockets' memory.
func (s *sockets) mode() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.queues[0]; first != nil && first.Attached().ZeroCopy {
		return socketZeroCopy
	}
	return socketCopy
}

// SetFrames is Config.Frames for sockets that are opened from now on. It is called as Port is.
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

// fit makes the sockets fit the interface, which uses so many receive queues (0: the driver does not say).
// While the interface is down nothing can be bound. What was found is in the port's Lost and Stuck.
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

// resize makes room for the sockets of so many queues, and closes those of queues beyond.
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

// cover opens sockets for queues that have none.
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

// steer has the XDP program run on all queues.
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

// install binds a prepared socket to its queue and has the card use it, or closes it.
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

// put notes the socket of a queue; nil for none.
func (s *sockets) put(queue int, socket *xsk.Socket, mtu wire.MTU) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[queue], s.carries[queue] = socket, mtu
}

// drainTimeout is how long sockets that are taken out of use may go on to send.
const drainTimeout = time.Second

// retire takes the sockets of some queues out of use and closes them. What they have received is
// delivered before, and what was given to them to send has left, or is counted as lost.
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

// drained reports whether sockets are empty. It runs under the engine's lease.
func (s *sockets) drained(list []*xsk.Socket) bool {
	empty := true
	for _, socket := range list {
		empty = s.linkOf(socket.Attached().Queue).Drain(socket) && empty
	}
	return empty
}
