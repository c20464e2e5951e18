// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
)

// Name is the device on which each program is a separate host.
const Name = "loop"

// Options configure the network.
type Options struct {
	Pools   []netip.Prefix
	Hosts   []Host
	Workers int    // of each named host; 0: one
	Capture string // file for the packets of all hosts; empty: none

	Seed       uint64
	Impairment memnet.Impairment
	Schedule   []Event
}

// Host is a host with a name and fixed addresses.
type Host struct {
	Name      string
	Addresses []netip.Addr
}

// DefaultPools are private networks.
var DefaultPools = []string{"10.88.0.0/16", "fd88::/64"}

// ParseOptions parses pools ("10.88.0.0/16") and hosts ("server=10.1.2.3,fd00::3").
func ParseOptions(pools, hosts []string) (o Options, err error) {
	for _, text := range pools {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.IsSingleIP() || p.Addr().Is4In6() || p.Addr().IsMulticast() {
			return o, fmt.Errorf("%w: --pool must be a network, such as %[3]s: %[2]q", verbs.ErrInvalid, text, DefaultPools[0])
		}
		o.Pools = append(o.Pools, p)
	}
	for _, text := range hosts {
		h, err := parseHost(text)
		if err != nil {
			return o, err
		}
		if other := o.holder(h.Addresses); other != "" {
			return o, fmt.Errorf("%w: --host %s: the address belongs to --host %s already", verbs.ErrInvalid, text, other)
		}
		o.Hosts = append(o.Hosts, h)
	}
	return o, nil
}

// holder returns the host with one of the addresses, or "".
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
		return h, fmt.Errorf("%w: --host must be NAME=ADDRESS, such as server=10.1.2.3: %q (the name %q is reserved)", verbs.ErrInvalid, text, Name)
	}
	h.Name = name
	for _, one := range strings.Split(list, ",") {
		a, err := netip.ParseAddr(one)
		if err != nil {
			return h, fmt.Errorf("%w: --host %s: %q is not an IP address", verbs.ErrInvalid, text, one)
		}
		if slices.Contains(h.Addresses, a) {
			return h, fmt.Errorf("%w: --host %s: duplicate address %v", verbs.ErrInvalid, text, a)
		}
		h.Addresses = append(h.Addresses, a)
	}
	return h, nil
}
