//go:build linux

package udpnet

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
)

// taken explains that another has RoCEv2's port of an address. It runs in the namespace.
func taken(address netip.Addr, err error) error {
	holders := []string{}
	for _, h := range host.PortHolders(wire.UDPPort) {
		if h.Address == address || h.Address.IsUnspecified() {
			holders = append(holders, h.String())
		}
	}
	if len(holders) == 0 {
		holders = []string{"another program"}
	}
	return fmt.Errorf("%w: %s has it; close that first, or give the device an interface with another address", err, strings.Join(holders, " and "))
}
