package loopback

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/roced/roced/verbs/hca"
)

// Network is the wire with its hosts.
type Network struct {
	wire   *hca.Wire
	guests *guests
	named  []*hca.WireHost
}

// New makes the wire, with the hosts that have names.
func New(o Options, log *slog.Logger) (*Network, error) {
	wire, err := hca.NewWire(0, hca.WithoutInline())
	if err != nil {
		return nil, err
	}
	n := &Network{wire: wire}
	if err := n.fill(o, log); err != nil {
		return nil, errors.Join(err, wire.Close())
	}
	return n, nil
}

func (n *Network) fill(o Options, log *slog.Logger) (err error) {
	var fixed []netip.Addr
	for _, h := range o.Hosts {
		host, err := n.wire.AddHost(h.Name, h.Addresses...)
		if err != nil {
			return fmt.Errorf("--host %s: %w", h.Name, err)
		}
		n.named = append(n.named, host)
		fixed = append(fixed, h.Addresses...)
	}
	var pools []*pool
	for _, prefix := range o.Pools {
		pools = append(pools, newPool(prefix, fixed...))
	}
	n.guests, err = newGuests(n.wire, pools, log)
	return err
}

// Devices are those that programs open.
func (n *Network) Devices() []Device {
	list := []Device{n.guests}
	for _, h := range n.named {
		list = append(list, h)
	}
	return list
}

// Close ends all hosts, and what programs have on them.
func (n *Network) Close() error {
	err := n.wire.Close()
	n.guests.ending.Wait()
	return err
}
