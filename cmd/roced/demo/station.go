// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"log/slog"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// station is a host on a port of the switch, with further queue pairs.
type station struct {
	name, role string
	addresses  []string
	queuePairs int
	*lab.Namespace
	*card.Device
	hosts []*host
	port  string
	watch *watch
}

// plugIn creates a namespace, connects it to the switch, and watches the port. Trains are disabled because a watch can
// read them only on Linux 6.2 or newer.
func (s *station) plugIn(bridge *lab.Bridge) (err error) {
	if s.Namespace, err = lab.New(labPrefix); err != nil {
		return err
	}
	if s.port, err = bridge.Port(s.Namespace, "eth0"); err != nil {
		return err
	}
	if err := s.CutTrains("eth0"); err != nil {
		return err
	}
	for i, a := range addresses {
		if err := s.AddAddress("eth0", s.addresses[i]+a.length); err != nil {
			return err
		}
	}
	s.watch, err = newWatch(bridge.Namespace, s.port)
	return err
}

// open opens a card on the host's link. It joins groups by sockets, so that a killed demo leaves no record under /run.
func (s *station) open(log *slog.Logger, modes []hca.Option) (err error) {
	s.Device, err = card.Open("eth0", s.Path(), log.With("host", s.name), append(modes[:len(modes):len(modes)], hca.WithMembership(hca.MembershipSocket))...)
	if err != nil {
		return err
	}
	return s.listen()
}

// listen creates the queue pairs.
func (s *station) listen() error {
	for range s.queuePairs {
		e, err := card.OpenEndpoint(s.Device, endpointOptions(verbs.UDPQKey))
		if err != nil {
			return err
		}
		s.hosts = append(s.hosts, &host{name: s.name, Namespace: s.Namespace, Device: s.Device, Endpoint: e})
	}
	return nil
}

func (s *station) close() (err error) {
	for _, h := range s.hosts {
		err = errors.Join(err, h.Endpoint.Close())
	}
	if s.Device != nil {
		err = errors.Join(err, s.Device.Close())
	}
	if s.watch != nil {
		err = errors.Join(err, s.watch.Close())
	}
	if s.Namespace != nil {
		err = errors.Join(err, s.Namespace.Close())
	}
	return err
}
