// SPDX-License-Identifier: Apache-2.0

//go:build linux

package udpnet

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
)

// taken explains that another program uses the RoCEv2 port of an address. It runs in the namespace.
func taken(address netip.Addr, err error) error {
	holders, cure := []string{}, "close that"
	for _, h := range host.PortHolders(wire.UDPPort) {
		if h.Address != address && !h.Address.IsUnspecified() || slices.Contains(holders, h.String()) {
			continue
		}
		holders = append(holders, h.String())
		if h.Kernel { // the module uses the port while it is loaded, even without a device
			cure = "unload or close that (modprobe -r rdma_rxe)"
		}
	}
	if len(holders) == 0 {
		holders = []string{"another program"}
	}
	return fmt.Errorf("%w: %s uses it; %s first, or open an interface with another address", err, strings.Join(holders, " and "), cure)
}
