// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
)

// Forward makes the namespace a router for IPv4 and IPv6.
func (ns *Namespace) Forward() error {
	return ns.Do(func() error {
		for _, knob := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
			if err := os.WriteFile(filepath.Join("/proc/sys/net", knob), []byte("1"), 0o644); err != nil {
				return fmt.Errorf("forwarding in %s: %w", ns.name, err)
			}
		}
		return nil
	})
}

// AddRoute adds a route to a network such as "10.78.0.0/24" through a gateway.
func (ns *Namespace) AddRoute(network, gateway string) error {
	_, dest, err := net.ParseCIDR(network)
	if err == nil {
		err = ns.nl.RouteAdd(&netlink.Route{Dst: dest, Gw: net.ParseIP(gateway)})
	}
	if err != nil {
		return fmt.Errorf("route to %s through %s in %s: %w", network, gateway, ns.name, err)
	}
	return nil
}
