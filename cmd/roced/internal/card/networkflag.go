// SPDX-License-Identifier: Apache-2.0

package card

import (
	"cmp"

	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
)

// NetworkFlag selects the network.
type NetworkFlag struct{ modeFlag[hca.Network] }

// Add adds the flag to a flag set.
func (n *NetworkFlag) Add(f *pflag.FlagSet) {
	n.list = []hca.Network{hca.NetworkAuto, hca.NetworkXDP, hca.NetworkUDP}
	f.Var(n, "network", "`network`: xdp (AF_XDP sockets: lowest latency, needs privileges), "+
		"udp (UDP sockets: no privileges, any interface) or auto (xdp if available)")
}

// Network returns the selected network.
func (n *NetworkFlag) Network() hca.Network { return cmp.Or(n.chosen, hca.NetworkAuto) }
