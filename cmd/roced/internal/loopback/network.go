package loopback

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

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
}

// New makes the network, with the hosts that have names.
func New(o Options, log *slog.Logger) (*Network, error) {
	n := &Network{memory: memnet.New(0)}
	if err := n.fill(o, log); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *Network) fill(o Options, log *slog.Logger) (err error) {
	if o.Capture != "" {
		if n.recorder, err = record.Create(o.Capture); err != nil {
			return fmt.Errorf("--capture: %w", err)
		}
	}
	var fixed []netip.Addr
	for _, h := range o.Hosts {
		card, err := n.newCard(h.Name, h.Addresses...)
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
func (n *Network) newCard(name string, addresses ...netip.Addr) (*hca.Card, error) {
	host, err := n.memory.AddHost(name, addresses...)
	if err != nil {
		return nil, err
	}
	card, err := hca.New(host, hca.WithoutInline())
	if err != nil || n.recorder == nil {
		return card, err
	}
	if err := n.recorder.Record(card); err != nil {
		return nil, errors.Join(err, card.Close())
	}
	return card, nil
}

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
	err := n.memory.Close()
	if n.recorder != nil {
		err = errors.Join(err, n.recorder.Close())
	}
	return err
}
