// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/roced/roced/verbs"
)

// AddrInfoFlags are the hints of GetAddrInfo (RAI_*).
type AddrInfoFlags uint32

// The flags.
const (
	AddrInfoPassive     AddrInfoFlags = 1 << 0 // for Bind: Source is set; without node, to all addresses
	AddrInfoNumericHost AddrInfoFlags = 1 << 1 // node is a numeric address
)

// AddrInfo is an address to bind to or to resolve (rdma_addrinfo).
type AddrInfo struct {
	Flags        AddrInfoFlags
	PortSpace    PortSpace
	QPType       verbs.QPType // of the endpoint's queue pair (ai_qp_type); 0 for that of the port space
	Source, Dest netip.AddrPort
}

// GetAddrInfo resolves a host and a service, by names or numbers (rdma_getaddrinfo). A nil hints means an address for
// Connect in port space TCP. Names are resolved on the host and in the network namespace of the program.
func GetAddrInfo(ctx context.Context, node, service string, hints *AddrInfo) ([]AddrInfo, error) {
	base := AddrInfo{PortSpace: PortSpaceTCP}
	if hints != nil {
		base = *hints
	}
	addresses, err := base.addresses(ctx, node)
	if err != nil {
		return nil, fmt.Errorf("addresses of %q: %w", node, err)
	}
	port, err := base.port(ctx, service)
	if err != nil {
		return nil, fmt.Errorf("port of %q: %w: %w", service, verbs.ErrInvalid, err)
	}
	list := make([]AddrInfo, len(addresses))
	for n, a := range addresses {
		list[n] = base
		if base.Flags&AddrInfoPassive != 0 {
			list[n].Source = netip.AddrPortFrom(a.Unmap(), port)
		} else {
			list[n].Dest = netip.AddrPortFrom(a.Unmap(), port)
		}
	}
	return list, nil
}

func (a *AddrInfo) addresses(ctx context.Context, node string) ([]netip.Addr, error) {
	if node == "" {
		if a.Flags&AddrInfoPassive == 0 {
			return nil, fmt.Errorf("%w: node is empty; only AddrInfoPassive permits that", verbs.ErrInvalid)
		}
		return []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}, nil
	}
	if address, err := netip.ParseAddr(node); err == nil {
		return []netip.Addr{address}, nil
	} else if a.Flags&AddrInfoNumericHost != 0 {
		return nil, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", node)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verbs.ErrHost, err)
	}
	return list, nil
}

func (a *AddrInfo) port(ctx context.Context, service string) (uint16, error) {
	if service == "" {
		return 0, nil
	}
	network := "udp"
	if a.PortSpace == PortSpaceTCP {
		network = "tcp"
	}
	port, err := net.DefaultResolver.LookupPort(ctx, network, service)
	return uint16(port), err
}
