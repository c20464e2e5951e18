// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"

	"github.com/roced/roced/cmd/roced/internal/record"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/server"
)

// Network is an in-memory network with its hosts.
type Network struct {
	memory   *memnet.Network
	recorder *record.Recorder // nil without capture
	guests   *guests
	named    []*hca.Card
	log      *slog.Logger
	marks    bool // mark packets; hosts then use congestion control
	closing  chan struct{}
	schedule sync.WaitGroup

	mu    sync.Mutex
	hosts map[string]*memnet.Host
}

// New creates the network with the named hosts.
func New(o Options, log *slog.Logger) (*Network, error) {
	n := &Network{memory: memnet.New(o.Seed), log: log, marks: o.Impairment.Mark > 0, closing: make(chan struct{}), hosts: map[string]*memnet.Host{}}
	n.memory.OneMachine()
	if err := n.fill(o, log); err != nil {
		return nil, errors.Join(err, n.close())
	}
	n.schedule.Go(func() { n.follow(o.Schedule) })
	return n, nil
}

func (n *Network) fill(o Options, log *slog.Logger) (err error) {
	if o.Impairment != (memnet.Impairment{}) {
		if err := n.memory.Impair(o.Impairment); err != nil {
			return err
		}
	}
	if o.Capture != "" {
		if n.recorder, err = record.Create(o.Capture); err != nil {
			return fmt.Errorf("--capture: %w", err)
		}
	}
	var fixed []netip.Addr
	for _, h := range o.Hosts {
		card, err := n.newCard(h.Name, o.Workers, h.Addresses...)
		if err != nil {
			return fmt.Errorf("--host %s: %w", h.Name, err)
		}
		n.named = append(n.named, card)
		fixed = append(fixed, h.Addresses...)
	}
	var pools []*pool
	for _, prefix := range o.Pools {
		pools = append(pools, newPool(prefix, fixed...))
	}
	n.guests, err = newGuests(n, pools, log)
	return err
}

// newCard creates a card on a new host. Its programs are in other processes, so it never runs inline.
func (n *Network) newCard(name string, workers int, addresses ...netip.Addr) (*hca.Card, error) {
	host, err := n.memory.AddHost(name, addresses...)
	if err != nil {
		return nil, err
	}
	options := []hca.Option{hca.WithoutInline(), hca.WithWorkers(workers)}
	if n.marks {
		options = append(options, hca.WithCongestion(hca.CongestionMark))
	}
	card, err := hca.New(host, options...)
	if err != nil {
		return nil, err
	}
	if n.recorder != nil {
		if err := n.recorder.Record(card); err != nil {
			return nil, errors.Join(err, card.Close())
		}
	}
	n.note(name, host)
	return card, nil
}

func (n *Network) note(name string, host *memnet.Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[name] = host
}

// forget removes a closed host from the map.
func (n *Network) forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.hosts, name)
}

// hostOf returns a host by name, or nil.
func (n *Network) hostOf(name string) *memnet.Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[name]
}

// Impaired returns the counters of impaired packets.
func (n *Network) Impaired() memnet.Counters { return n.memory.Counters() }

// Devices returns the devices that programs can open.
func (n *Network) Devices() []Device {
	list := []Device{n.guests}
	for _, h := range n.named {
		list = append(list, h)
	}
	return list
}

// Sources returns the devices as sources of a server.
func (n *Network) Sources() (list []server.Source) {
	for _, d := range n.Devices() {
		list = append(list, d)
	}
	return list
}

// Close closes all hosts with all sessions on them.
func (n *Network) Close() error {
	err := n.close()
	n.guests.ending.Wait()
	return err
}

func (n *Network) close() error {
	close(n.closing)
	n.schedule.Wait()
	err := n.memory.Close()
	if n.recorder != nil {
		err = errors.Join(err, n.recorder.Close())
	}
	return err
}
