// SPDX-License-Identifier: Apache-2.0

package main

// connections is how much one connection carries, beside TCP.
func connections(f *records) (*figure, error) {
	p, err := f.part("connections bulk")
	if err != nil {
		return nil, err
	}
	mtus := []int{1024, 4096}
	axes := panel{title: "messages of 64 KiB", x: "RDMA MTU, bytes", y: "Gbit/s of payload", ticks: names(mtus), fromZero: true}
	for _, l := range []struct {
		contender
		variant string
	}{{tcp, "tcp"}, {tcpPlain, "tcp unsegmented"}, {datagrams, "inline"}, {sends, "rc send"}, {writes, "rc write"}, {reads, "rc read"}} {
		drawn := line{contender: l.contender}
		for _, mtu := range mtus {
			r, err := p.find(record{Name: "connection", Variant: l.variant, Size: mtu})
			if err != nil {
				return nil, err
			}
			drawn.values = append(drawn.values, r.PerSecond*float64(mtu)*8/1e9) // it counts packets, or parts as long
		}
		axes.lines = append(axes.lines, drawn)
	}
	return &figure{title: "One connection, beside TCP", panels: []panel{axes}, source: p.source()}, nil
}
