// SPDX-License-Identifier: Apache-2.0

package main

import "strconv"

var payloads = []int{64, 256, 1024}

// rates is how many messages a second one program receives of another one's: those that make a
// packet of each message, and then all.
func rates(f *records) (*figure, error) {
	p, err := f.part("oneway")
	if err != nil {
		return nil, err
	}
	packets := panel{title: "a packet for each message", x: "payload, bytes", y: "million messages a second", ticks: names(payloads), fromZero: true}
	all := panel{title: "and trains that are never cut", x: packets.x, y: packets.y, ticks: packets.ticks}
	for _, l := range []struct {
		contender
		variant string
	}{{udp, "udp"}, {udpCut, "udp gso cut"}, {raw, "raw"}, {rocedSpin, "inline"}, {rocedSleep, "worker"}, {udpTrains, "udp gso"}} {
		drawn := line{contender: l.contender}
		for _, size := range payloads {
			r, err := p.find(record{Name: "oneway", Variant: l.variant, Size: size})
			if err != nil {
				return nil, err
			}
			drawn.values = append(drawn.values, r.PerSecond/1e6)
		}
		all.lines = append(all.lines, drawn)
	}
	packets.lines = all.lines[:len(all.lines)-1]
	return &figure{title: "One way: messages received, by size", panels: []panel{packets, all}, source: p.source()}, nil
}

// names are numbers as ticks show them.
func names(numbers []int) (texts []string) {
	for _, n := range numbers {
		texts = append(texts, strconv.Itoa(n))
	}
	return texts
}
