package card

import (
	"cmp"

	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
)

// NetworkFlag is the way to the network.
type NetworkFlag struct{ modeFlag[hca.Network] }

// Add adds the flag to a command's.
func (n *NetworkFlag) Add(f *pflag.FlagSet) {
	n.list = []hca.Network{hca.NetworkAuto, hca.NetworkXDP, hca.NetworkUDP}
	f.Var(n, "network", "`way` to the network: xdp (AF_XDP sockets: quickest for single messages, needs privileges), "+
		"udp (UDP sockets: no privilege, any interface) or auto (xdp where it can be had)")
}

// Network is the way that was chosen.
func (n *NetworkFlag) Network() hca.Network { return cmp.Or(n.chosen, hca.NetworkAuto) }
