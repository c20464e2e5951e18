// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
)

// enlarge replaces sockets whose chunks are too small for the RDMA MTU that the interface now allows. If that fails,
// the card keeps its sockets, and retries when the interface's MTU is set again. Sockets are never replaced by smaller
// ones.
func (s *sockets) enlarge(interfaceMTU int) {
	mtu := min(wire.MTUFor(interfaceMTU), s.most)
	if mtu <= s.carried || s.queues[0] == nil {
		s.refused, s.stuck = 0, nil
		return
	}
	if s.refused == interfaceMTU {
		return
	}
	s.refused, s.stuck = 0, nil
	if err := s.replaceAll(mtu); err != nil {
		s.refused, s.stuck = interfaceMTU, fmt.Errorf("the RDMA MTU stays %v: cannot open sockets for packets of %v: %w", s.carried, mtu, err)
		return
	}
	s.carried = mtu
}

// replaceAll replaces all sockets that do not carry an RDMA MTU: first that of queue 0, to test the driver.
func (s *sockets) replaceAll(mtu wire.MTU) error {
	var first, others []int
	for queue, carries := range s.carries {
		switch {
		case carries >= mtu || s.queues[queue] == nil:
		case queue == 0:
			first = append(first, queue)
		default:
			others = append(others, queue)
		}
	}
	if err := s.replace(first, mtu); err != nil {
		return err
	}
	return s.replace(others, mtu)
}

// replace replaces the sockets of some queues. Everything except the binding is done while the old ones still work. If
// the kernel refuses the new ones, others like the old ones are opened.
func (s *sockets) replace(queues []int, mtu wire.MTU) (failed error) {
	fresh, err := s.prepareAll(queues, mtu)
	if err != nil {
		return err
	}
	carried := slices.Clone(s.carries)
	s.retire(queues)
	for i, queue := range queues {
		err := s.install(queue, fresh[i], mtu)
		if err == nil {
			continue
		}
		failed = errors.Join(failed, err)
		again, err := s.prepare(queue, carried[queue])
		if err == nil {
			err = s.install(queue, again, carried[queue])
		}
		failed = errors.Join(failed, err) // without any, cover retries later
	}
	return failed
}

// prepareAll prepares sockets for some queues, all or none.
func (s *sockets) prepareAll(queues []int, mtu wire.MTU) (list []*xsk.Socket, err error) {
	for _, queue := range queues {
		socket, err := s.prepare(queue, mtu)
		if err != nil {
			for _, one := range list {
				err = errors.Join(err, one.Close())
			}
			return nil, err
		}
		list = append(list, socket)
	}
	return list, nil
}
