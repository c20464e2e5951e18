package loopback

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
)

// Name is the device that gives each program a host of its own.
const Name = "loop"

// Options say which hosts there are.
type Options struct {
	Pools   []netip.Prefix
	Hosts   []Host
	Workers int    // of each of these hosts' cards; 0: one
	Capture string // file for the packets of all hosts; empty: none

	Seed       uint64
	Impairment memnet.Impairment
	Schedule   []Event
}

// Host is one with a name and fixed addresses.
type Host struct {
	Name      string
	Addresses []netip.Addr
}

// DefaultPools are private.
var DefaultPools = []string{"10.88.0.0/16", "fd88::/64"}

// ParseOptions reads pools ("10.88.0.0/16") and hosts ("server=10.1.2.3,fd00::3").
func ParseOptions(pools, hosts []string) (o Options, err error) {
	for _, text := range pools {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.IsSingleIP() || p.Addr().Is4In6() || p.Addr().IsMulticast() {
			return o, fmt.Errorf("%w: --pool %s: write a network, such as %s", verbs.ErrInvalid, text, DefaultPools[0])
		}
		o.Pools = append(o.Pools, p)
	}
	for _, text := range hosts {
		h, err := parseHost(text)
		if err != nil {
			return o, err
		}
		if other := o.holder(h.Addresses); other != "" {
			return o, fmt.Errorf("%w: --host %s: --host %s has that address already; give each its own", verbs.ErrInvalid, text, other)
		}
		o.Hosts = append(o.Hosts, h)
	}
	return o, nil
}

// holder is the host that has one of the addresses; empty if none has.
func (o *Options) holder(addresses []netip.Addr) string {
	for _, h := range o.Hosts {
		if slices.ContainsFunc(addresses, func(a netip.Addr) bool { return slices.Contains(h.Addresses, a) }) {
			return h.Name
		}
	}
	return ""
}

func parseHost(text string) (h Host, err error) {
	name, list, ok := strings.Cut(text, "=")
	if !ok || name == "" || name == Name {
		return h, fmt.Errorf("%w: --host %s: write NAME=ADDRESS, such as server=10.1.2.3; %q is the device of all others", verbs.ErrInvalid, text, Name)
	}
	h.Name = name
	for _, one := range strings.Split(list, ",") {
		a, err := netip.ParseAddr(one)
		if err != nil {
			return h, fmt.Errorf("%w: --host %s: %q is not an IP address", verbs.ErrInvalid, text, one)
		}
		if slices.Contains(h.Addresses, a) {
			return h, fmt.Errorf("%w: --host %s: %v is there twice", verbs.ErrInvalid, text, a)
		}
		h.Addresses = append(h.Addresses, a)
	}
	return h, nil
}
