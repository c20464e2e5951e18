// SPDX-License-Identifier: Apache-2.0

package main

import "errors"

// receive plots the rate of one side when no sender limits it: each round, over what the host
// did with the two cores meanwhile.
func receive(f *records) (*figure, error) {
	p, err := f.part("receive")
	if err != nil {
		return nil, err
	}
	const rate = "million messages a second"
	speed := panel{title: "by the speed of the sending core", x: "million steps a second", y: rate, fromZero: true}
	distance := panel{title: "by the distance of the two cores", x: "there and back, ns", y: rate, fromZero: true}
	for _, l := range []struct {
		contender
		variant string
	}{{raw, "raw"}, {rocedSpin, "inline"}} {
		r, err := p.find(record{Name: "receive alone", Variant: l.variant, Size: 64, Setting: "shipped"})
		if err != nil {
			return nil, err
		}
		if n := len(r.Rates); n == 0 || n != len(r.Speeds) || n != len(r.Distances) {
			return nil, errors.New("bench.json, part receive: a speed and a distance for each rate is needed, measure it again")
		}
		speed.lines = append(speed.lines, line{contender: l.contender, places: r.Speeds, values: millions(r.Rates)})
		distance.lines = append(distance.lines, line{contender: l.contender, places: r.Distances, values: millions(r.Rates)})
	}
	return &figure{title: "Receiving alone: each round, 64 bytes", panels: []panel{speed, distance}, source: p.source(), sameScale: true}, nil
}

func millions(rates []float64) (all []float64) {
	for _, r := range rates {
		all = append(all, r/1e6)
	}
	return all
}
