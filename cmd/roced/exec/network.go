// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"github.com/roced/roced/cmd/roced/internal/loopback"
	"github.com/roced/roced/cmd/roced/internal/record"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/server"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// network is the network of the devices of a private service.
type network interface {
	Devices() []loopback.Device
	Sources() []server.Source
	Close() error
}

// inMemory is the default network.
const inMemory = "loopback"

// networks maps names on the command line to networks. The in-memory network has no interface.
var networks = map[string]hca.Network{"": "", inMemory: "", "udp": hca.NetworkUDP, "xdp": hca.NetworkXDP}

// openNetwork opens the selected network.
func (o *options) openNetwork() (network, error) {
	if kind := networks[o.network]; kind != "" {
		return o.openInterface(kind)
	}
	n, err := o.openPrivate(os.Stderr)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// describeMemory checks the flags of an in-memory network and stores its options.
func (o *options) describeMemory() (err error) {
	if o.memory, err = loopback.ParseOptions(loopback.DefaultPools, namedHosts(o.hosts)); err != nil {
		return err
	}
	o.memory.Capture = o.capture
	return o.impairment.Fill(&o.memory)
}

// namedHosts returns host1, host2, … with the first addresses of the pools.
func namedHosts(count int) (list []string) {
	for i := range count {
		name := "host" + strconv.Itoa(i+1) + "="
		for k, pool := range loopback.DefaultPools {
			if k > 0 {
				name += ","
			}
			name += nth(netip.MustParsePrefix(pool).Addr(), i+1).String()
		}
		list = append(list, name)
	}
	return list
}

func nth(a netip.Addr, n int) netip.Addr {
	for range n {
		a = a.Next()
	}
	return a
}

// interfaceCard is a card on an interface.
type interfaceCard struct {
	*hca.Card
	recorder *record.Recorder // nil without capture
}

func (o *options) openInterface(kind hca.Network) (network, error) {
	name := o.device
	if name == "" {
		var err error
		if name, err = defaultInterface(); err != nil {
			return nil, fmt.Errorf("--network %s: %w", o.network, err)
		}
		fmt.Fprintf(o.errOut, "roced: --network %s uses interface %s; use --device to select another\n", o.network, name)
	}
	card, err := hca.Open(name, hca.WithNetwork(kind), hca.WithoutInline(), hca.WithLogger(o.log))
	if err != nil {
		return nil, err
	}
	c := interfaceCard{Card: card}
	if o.capture != "" {
		if c.recorder, err = record.Create(o.capture); err == nil {
			err = c.recorder.Record(card)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--capture: %w", err), c.Close())
	}
	return c, nil
}

// Close closes the card, then its capture.
func (c interfaceCard) Close() error {
	err := c.Card.Close()
	if c.recorder != nil {
		err = errors.Join(err, c.recorder.Close())
	}
	return err
}

func (c interfaceCard) Devices() []loopback.Device { return []loopback.Device{c.Card} }
func (c interfaceCard) Sources() []server.Source   { return []server.Source{c.Card} }

// defaultInterface returns the interface of the default route, or the only interface with a global address.
func defaultInterface() (string, error) {
	routes, err := netlink.RouteList(nil, unix.AF_UNSPEC)
	if err != nil {
		return "", fmt.Errorf("read routes: %w", err)
	}
	routes = slices.DeleteFunc(routes, func(r netlink.Route) bool { return !isDefault(r) })
	slices.SortStableFunc(routes, func(a, b netlink.Route) int { return cmp.Or(a.Family-b.Family, a.Priority-b.Priority) })
	if len(routes) > 0 {
		link, err := netlink.LinkByIndex(routes[0].LinkIndex)
		if err != nil {
			return "", fmt.Errorf("the interface of the default route: %w", err)
		}
		return link.Attrs().Name, nil
	}
	return onlyInterface()
}

func isDefault(r netlink.Route) bool {
	if r.LinkIndex == 0 || r.Type != unix.RTN_UNICAST {
		return false
	}
	if r.Dst == nil {
		return true
	}
	ones, _ := r.Dst.Mask.Size()
	return ones == 0
}

func onlyInterface() (string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return "", fmt.Errorf("read interfaces: %w", err)
	}
	var names []string
	for _, link := range links {
		addresses, err := netlink.AddrList(link, unix.AF_UNSPEC)
		if err != nil {
			return "", fmt.Errorf("read addresses: %w", err)
		}
		if slices.ContainsFunc(addresses, func(a netlink.Addr) bool { return a.IP.IsGlobalUnicast() }) {
			names = append(names, link.Attrs().Name)
		}
	}
	if len(names) != 1 {
		return "", fmt.Errorf("%w: no default route; select an interface with --device: %q have addresses", verbs.ErrInvalid, names)
	}
	return names[0], nil
}
