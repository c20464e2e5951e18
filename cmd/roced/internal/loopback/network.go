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

// Network is the network in memory with its hosts.
type Network struct {
	memory   *memnet.Network
	recorder *record.Recorder // nil: no capture
	guests   *guests
	named    []*hca.Card
	log      *slog.Logger
	marks    bool // packets: then hosts heed that
	closing  chan struct{}
	schedule sync.WaitGroup

	mu    sync.Mutex
	hosts map[string]*memnet.Host
}

// New makes the network, with the hosts that have names.
func New(o Options, log *slog.Logger) (*Network, error) {
	n := &Network{memory: memnet.New(o.Seed), log: log, marks: o.Impairment.Mark > 0, closing: make(chan struct{}), hosts: map[string]*memnet.Host{}}
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

// newCard makes a card on a new host. No program runs it: they are in other processes.
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

// forget forgets a host that has gone.
func (n *Network) forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.hosts, name)
}

// hostOf is the host of a name; nil if it is not there.
func (n *Network) hostOf(name string) *memnet.Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[name]
}

// Impaired counts what the network has done to packets.
func (n *Network) Impaired() memnet.Counters { return n.memory.Counters() }

// Devices are those that programs open.
func (n *Network) Devices() []Device {
	list := []Device{n.guests}
	for _, h := range n.named {
		list = append(list, h)
	}
	return list
}

// Sources are the devices for a server.
func (n *Network) Sources() (list []server.Source) {
	for _, d := range n.Devices() {
		list = append(list, d)
	}
	return list
}

// Close ends all hosts, and what programs have on them.
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
