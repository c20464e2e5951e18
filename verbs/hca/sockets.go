//go:build linux

package hca

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/host"
)

// sockets are a card's AF_XDP sockets. They follow the interface while the card is open: each receive
// queue has one, and each has chunks for the largest RDMA MTU that the interface has had.
//
//	queue without socket    Prepare ─► Bind ─► SetRing ─► Add           cover
//	queue that has gone     ClearRings ─► Drain ─► Remove ─► Close      retire
//	chunks too small        Prepare ─► retire ─► Bind ─► SetRing ─► Add replace
//
// What arrives in between for a queue without socket is dropped and counted (drop_no_ring); what is to
// be sent meanwhile waits in its queue pair.
type sockets struct {
	plan     *socketPlan
	inside   *host.Namespace // where sockets are opened
	steering *bpf.Steering
	link     *link.XDP
	queues   []*xsk.Socket // by queue; nil where there is none. Changed under Card.mu and asking
	carries  []wire.MTU    // by queue
	steered  int           // queues that the XDP program runs on
	refused  int           // the interface's MTU for which larger chunks could not be had
	stuck    error         // why not
}

// newSockets takes the sockets that Open has opened.
func newSockets(plan *socketPlan, inside *host.Namespace, steering *bpf.Steering, link *link.XDP, opened []*xsk.Socket, mtu wire.MTU) *sockets {
	s := &sockets{plan: plan, inside: inside, steering: steering, link: link, queues: slices.Clone(opened), steered: len(opened)}
	for range opened {
		s.carries = append(s.carries, mtu)
	}
	return s
}

// mode names how frames get into the sockets' memory. The caller holds Card.mu.
func (s *sockets) mode() SocketMode {
	if first := s.queues[0]; first != nil && first.Attached().ZeroCopy {
		return SocketZeroCopy
	}
	return SocketCopy
}

// prepare opens a socket for a queue, but for the binding.
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

// fitSockets makes the sockets fit the interface. lost says which queue has none; stuck, why the RDMA
// MTU cannot follow. While the interface is down nothing can be bound. The caller holds card.asking.
func (card *Card) fitSockets(status *portStatus) {
	s := card.sockets
	if s == nil {
		return
	}
	if was := card.portStatus(); !status.enabled || card.ended() != nil {
		status.lost, status.stuck = was.lost, was.stuck
		return
	}
	count := cmp.Or(status.receiveQueues, len(s.queues))
	status.lost = checkQueues(status.name, count)
	count = min(count, maxQueues)
	if was := len(s.queues); was != count {
		card.log.Info("number of receive queues changed", "device", status.name, "was", was, "now", count)
	}
	card.resizeSockets(count)
	status.lost = errors.Join(status.lost, card.cover(), s.steer())
	card.enlarge(status.mtu)
	status.stuck = s.stuck
}

// resizeSockets makes room for the sockets of so many queues, and closes those of queues beyond.
func (card *Card) resizeSockets(count int) {
	s := card.sockets
	var gone []int
	for queue := count; queue < len(s.queues); queue++ {
		gone = append(gone, queue)
	}
	card.retire(gone)
	card.mu.Lock()
	defer card.mu.Unlock()
	for len(s.queues) < count {
		s.queues, s.carries = append(s.queues, nil), append(s.carries, 0)
	}
	s.queues, s.carries = s.queues[:count], s.carries[:count]
}

// cover opens sockets for queues that have none.
func (card *Card) cover() error {
	s := card.sockets
	for queue, socket := range s.queues {
		if socket != nil {
			continue
		}
		socket, err := s.prepare(queue, card.carried)
		if err == nil {
			err = card.install(queue, socket, card.carried)
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
func (card *Card) install(queue int, socket *xsk.Socket, mtu wire.MTU) error {
	s := card.sockets
	err := socket.Bind()
	if err == nil {
		err = s.steering.SetRing(queue, socket.FD())
	}
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	card.mu.Lock()
	defer card.mu.Unlock()
	card.engine.ChangeLink(func() { s.link.Add(socket) })
	s.queues[queue], s.carries[queue] = socket, mtu
	return nil
}

// retire takes the sockets of some queues out of use and closes them. What they have received is
// delivered before, and what was given to them to send has left, or is counted as lost.
func (card *Card) retire(queues []int) {
	if len(queues) == 0 {
		return
	}
	s := card.sockets
	if err := s.steering.ClearRings(queues...); err != nil {
		card.log.Error("cannot take a queue out of the steering table", "device", card.Name(), "error", err)
	}
	var retired []*xsk.Socket
	for _, queue := range queues {
		if socket := s.queues[queue]; socket != nil {
			retired = append(retired, socket)
		}
	}
	card.engine.Until(func() bool { return s.drained(retired) }, closeTimeout)
	card.forgetSockets(queues, retired)
	for _, socket := range retired {
		if err := socket.Close(); err != nil {
			card.log.Error("cannot close a socket", "device", card.Name(), "error", err)
		}
	}
}

// forgetSockets has the card use sockets no more.
func (card *Card) forgetSockets(queues []int, retired []*xsk.Socket) {
	s := card.sockets
	card.mu.Lock()
	defer card.mu.Unlock()
	card.engine.ChangeLink(func() {
		for _, socket := range retired {
			s.link.Remove(socket)
		}
	})
	for _, queue := range queues {
		s.queues[queue], s.carries[queue] = nil, 0
	}
}

// drained reports whether sockets are empty. It runs under the engine's lease.
func (s *sockets) drained(list []*xsk.Socket) bool {
	empty := true
	for _, socket := range list {
		empty = s.link.Drain(socket) && empty
	}
	return empty
}
