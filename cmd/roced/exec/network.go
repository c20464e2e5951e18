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

// network is what the devices of an own service are on.
type network interface {
	Devices() []loopback.Device
	Sources() []server.Source
	Close() error
}

// inMemory is the network by default.
const inMemory = "loopback"

// networks are the ways by their names on the command line. In memory there is no interface.
var networks = map[string]hca.Network{"": "", inMemory: "", "udp": hca.NetworkUDP, "xdp": hca.NetworkXDP}

// openNetwork makes the network that the command line asks for.
func (o *options) openNetwork() (network, error) {
	if way := networks[o.network]; way != "" {
		return o.openInterface(way)
	}
	n, err := o.openPrivate(os.Stderr)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// describeMemory finds mistakes in what the command line says of a network in memory.
func (o *options) describeMemory() (err error) {
	if o.memory, err = loopback.ParseOptions(loopback.DefaultPools, namedHosts(o.hosts)); err != nil {
		return err
	}
	o.memory.Capture = o.capture
	return o.weather.Fill(&o.memory)
}

// namedHosts are host1, host2 and so on, with the first addresses of the pools.
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
	recorder *record.Recorder // nil: no capture
}

func (o *options) openInterface(way hca.Network) (network, error) {
	name := o.device
	if name == "" {
		var err error
		if name, err = defaultInterface(); err != nil {
			return nil, fmt.Errorf("--network %s: %w", o.network, err)
		}
		fmt.Fprintf(o.errOut, "roced: --network %s uses interface %s; --device chooses another\n", o.network, name)
	}
	card, err := hca.Open(name, hca.WithNetwork(way), hca.WithoutInline(), hca.WithLogger(o.log))
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

// Close ends the card, and then its capture.
func (c interfaceCard) Close() error {
	err := c.Card.Close()
	if c.recorder != nil {
		err = errors.Join(err, c.recorder.Close())
	}
	return err
}

func (c interfaceCard) Devices() []loopback.Device { return []loopback.Device{c.Card} }
func (c interfaceCard) Sources() []server.Source   { return []server.Source{c.Card} }

// defaultInterface is the interface of the default route, or the only one with an address that others reach.
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
		return "", fmt.Errorf("%w: there is no default route, and the interfaces with an address are %q; --device names one", verbs.ErrInvalid, names)
	}
	return names[0], nil
}
