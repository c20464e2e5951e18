// SPDX-License-Identifier: Apache-2.0

package main

// latency is what part of the round trips takes how long.
func latency(f *records) (*figure, error) {
	p, err := f.part("roundtrip")
	if err != nil {
		return nil, err
	}
	figure := &figure{title: "Round trips of 64 bytes", source: p.source(), sameScale: true}
	for _, way := range []struct {
		title, name, variant string
		roced                contender
	}{
		{"both sides spin", "roundtrip spinning", "inline", rocedSpin},
		{"both sides sleep", "roundtrip sleeping", "worker", rocedSleep},
	} {
		axes := panel{title: way.title, x: "per cent of the round trips", y: "at most, µs", ticks: []string{"50", "90", "99", "99.9"}}
		for _, l := range []struct {
			contender
			variant string
		}{{udp, "udp"}, {way.roced, way.variant}} {
			r, err := p.find(record{Name: way.name, Variant: l.variant, Size: 64})
			if err != nil {
				return nil, err
			}
			axes.lines = append(axes.lines, line{contender: l.contender, values: []float64{r.P50 / 1e3, r.P90 / 1e3, r.P99 / 1e3, r.P999 / 1e3}})
		}
		figure.panels = append(figure.panels, axes)
	}
	return figure, nil
}
