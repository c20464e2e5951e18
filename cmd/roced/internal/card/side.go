// SPDX-License-Identifier: Apache-2.0

package card

import (
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/cli"
)

// Side describes this end, which sends from an address.
func (d *Device) Side(address string) Side {
	return Side{Device: d.Attr.Name, Address: address, MTU: d.MTU, Network: cli.Network(d.Attr.XDPMode, d.Attr.AFXDPMode), XDP: d.Attr.XDPMode, AFXDP: d.Attr.AFXDPMode, Daemon: d.Daemon != ""}
}

// Side describes one of the two devices. XDP is empty without an interface.
type Side struct {
	Device  string `json:"device"`
	Address string `json:"address"`
	MTU     int    `json:"mtu"`               // RDMA MTU, bytes
	Network string `json:"network,omitempty"` // xdp, udp, none
	XDP     string `json:"xdp,omitempty"`
	AFXDP   string `json:"af_xdp,omitempty"`
	Daemon  bool   `json:"service,omitempty"` // the device is one of the service
}

func (s Side) String() string {
	text := fmt.Sprintf("%s, %s, RDMA MTU %d", s.Device, s.Address, s.MTU)
	if s.XDP != "" {
		text += ", " + cli.Way(s.XDP, s.AFXDP)
	}
	if s.Daemon {
		text += ", device of the service"
	}
	return text
}
