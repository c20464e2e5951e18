// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/roced/roced/verbs/hca"
)

// check validates combinations of keys and sets the default names of devices.
func (p *parser) check() {
	interfaces, names := map[string]int{}, map[string]int{}
	for i := range p.config.Devices {
		d := &p.config.Devices[i]
		at := place{d.line, 1}
		if d.Interface == "" && d.line != p.refused {
			p.errorf(at, "device", `missing interface: add interface = "eth0" below`)
		}
		if d.Interface == "" {
			continue
		}
		if d.Name == "" {
			d.Name = d.Interface
		}
		if line := interfaces[d.Interface]; line > 0 {
			p.errorf(at, "device.interface", "%q is already used by the device of line %d; an interface can have only one device", d.Interface, line)
		} else if line := names[d.Name]; line > 0 {
			p.errorf(at, "device.name", "%q is already the name of the device of line %d; use another", d.Name, line)
		}
		interfaces[d.Interface], names[d.Name] = d.line, d.line
		p.checkModes(at, d)
	}
}

func (p *parser) checkModes(at place, d *Device) {
	if d.DCQCN.MinRate >= d.DCQCN.LineRate {
		p.errorf(at, "device.dcqcn.min_rate", "min_rate must be less than line_rate: %d, %d", d.DCQCN.MinRate, d.DCQCN.LineRate)
	}
	if d.Network == hca.NetworkUDP {
		p.checkUDP(at, d)
		return
	}
	if d.AFXDP != hca.SocketZeroCopy {
		return
	}
	if d.XDP == hca.XDPGeneric {
		p.errorf(at, "device.af_xdp", `"zero-copy" requires native XDP; remove xdp = "generic" or use "auto"`)
	}
	if d.Send == hca.SendTrains {
		p.errorf(at, "device.af_xdp", `"zero-copy" cannot be combined with send = "trains"; remove it or use "auto"`)
	}
}

// checkUDP rejects keys that apply to XDP only.
func (p *parser) checkUDP(at place, d *Device) {
	for _, k := range []struct {
		name  string
		given bool
	}{
		{"xdp", d.XDP != hca.XDPAuto}, {"af_xdp", d.AFXDP != hca.SocketAuto}, {"send", d.Send != hca.SendAuto},
		{"frames", d.Frames != 0}, {"workers", d.Workers > 1}, {"tuning", d.Tuning != hca.Tuning{}}, {"membership", d.Membership == hca.MembershipNetlink},
	} {
		if k.given {
			p.errorf(at, "device."+k.name, `requires XDP and cannot be combined with network = "udp"`)
		}
	}
}
