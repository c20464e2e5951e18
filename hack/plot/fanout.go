// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

var receivers = []int{1, 4, 16, 64}

// fanOut is how many messages a second the receivers in one group get, all together.
func fanOut(f *records) (*figure, error) {
	p, err := f.part("fanout")
	if err != nil {
		return nil, err
	}
	figure := &figure{title: "One group: deliveries, by the number of receivers", source: p.source(), sameScale: true}
	for _, size := range []int{64, 1024} {
		axes := panel{title: fmt.Sprintf("%d bytes", size), x: "receivers on one host", y: "million deliveries a second", ticks: names(receivers)}
		for _, l := range []struct {
			contender
			variant string
		}{{udp, "udp"}, {rocedSpin, "inline"}} {
			drawn := line{contender: l.contender}
			for _, count := range receivers {
				r, err := p.find(record{Name: fmt.Sprintf("fan-out to %d", count), Variant: l.variant, Size: size})
				if err != nil {
					return nil, err
				}
				drawn.values = append(drawn.values, r.PerSecond/1e6)
			}
			axes.lines = append(axes.lines, drawn)
		}
		figure.panels = append(figure.panels, axes)
	}
	return figure, nil
}
