package config

import (
	"github.com/roced/roced/verbs/hca"
)

// check finds what is wrong with several keys together, and gives devices their names.
func (p *parser) check() {
	interfaces, names := map[string]int{}, map[string]int{}
	for i := range p.config.Devices {
		d := &p.config.Devices[i]
		at := place{d.line, 1}
		if d.Interface == "" && d.line != p.refused {
			p.mistake(at, "device", `has no interface: write interface = "eth0" below`)
		}
		if d.Interface == "" {
			continue
		}
		if d.Name == "" {
			d.Name = d.Interface
		}
		if line := interfaces[d.Interface]; line > 0 {
			p.mistake(at, "device.interface", "%q is the device's of line %d already; an interface has one device", d.Interface, line)
		} else if line := names[d.Name]; line > 0 {
			p.mistake(at, "device.name", "%q is the name of the device of line %d already; give this one another", d.Name, line)
		}
		interfaces[d.Interface], names[d.Name] = d.line, d.line
		p.checkModes(at, d)
	}
}

func (p *parser) checkModes(at place, d *Device) {
	if d.DCQCN.MinRate >= d.DCQCN.LineRate {
		p.mistake(at, "device.dcqcn.min_rate", "is %d, and line_rate %d; write a min_rate that is less", d.DCQCN.MinRate, d.DCQCN.LineRate)
	}
	if d.Network == hca.NetworkUDP {
		p.checkUDP(at, d)
		return
	}
	if d.AFXDP != hca.SocketZeroCopy {
		return
	}
	if d.XDP == hca.XDPGeneric {
		p.mistake(at, "device.af_xdp", `"zero-copy" needs XDP in the driver; leave out xdp = "generic", or write "auto"`)
	}
	if d.Send == hca.SendTrains {
		p.mistake(at, "device.af_xdp", `"zero-copy" needs no trains; leave out send = "trains", or write "auto"`)
	}
}

// checkUDP finds keys that ask for what only XDP has.
func (p *parser) checkUDP(at place, d *Device) {
	for _, k := range []struct {
		name  string
		given bool
	}{
		{"xdp", d.XDP != hca.XDPAuto}, {"af_xdp", d.AFXDP != hca.SocketAuto}, {"send", d.Send != hca.SendAuto},
		{"frames", d.Frames != 0}, {"workers", d.Workers > 1}, {"tuning", d.Tuning != hca.Tuning{}}, {"membership", d.Membership == hca.MembershipNetlink},
	} {
		if k.given {
			p.mistake(at, "device."+k.name, `network = "udp" uses no XDP, and has no use for this key; leave out one of the two`)
		}
	}
}
