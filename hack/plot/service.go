// SPDX-License-Identifier: Apache-2.0

package main

// service is what programs get through the service, beside TCP, UDP and a card of their own.
func service(f *records) (*figure, error) {
	rates, err := f.part("daemon rates")
	if err != nil {
		return nil, err
	}
	sizes := []int{64, 1024}
	axes := panel{title: "one way (TCP: parts as long)", x: "payload, bytes", y: "million a second", ticks: names(sizes)}
	for _, l := range []struct {
		contender
		variant string
	}{{udp, "udp"}, {tcp, "tcp"}, {rocedSleep, "worker"}, {served, "daemon"}, {servedSpins, "daemon spinning"}} {
		drawn := line{contender: l.contender}
		for _, size := range sizes {
			r, err := rates.find(record{Name: "daemon oneway", Variant: l.variant, Size: size})
			if err != nil {
				return nil, err
			}
			drawn.values = append(drawn.values, r.PerSecond/1e6)
		}
		axes.lines = append(axes.lines, drawn)
	}
	trips, err := serviceTrips(f)
	if err != nil {
		return nil, err
	}
	return &figure{title: "Through the service", panels: []panel{axes, trips}, source: rates.source()}, nil
}

func serviceTrips(f *records) (panel, error) {
	axes := panel{title: "round trips of 64 bytes", x: "per cent of the round trips", y: "at most, µs", ticks: []string{"50", "90", "99", "99.9"}}
	p, err := f.part("daemon trips")
	if err != nil {
		return axes, err
	}
	for _, l := range []struct {
		contender
		name, variant string
	}{
		{udp, "daemon roundtrip sleeping", "udp"}, {rocedSleep, "daemon roundtrip sleeping", "worker"},
		{served, "daemon roundtrip sleeping", "daemon"}, {servedSpins, "daemon roundtrip spinning", "daemon spinning"},
	} {
		r, err := p.find(record{Name: l.name, Variant: l.variant, Size: 64})
		if err != nil {
			return axes, err
		}
		axes.lines = append(axes.lines, line{contender: l.contender, values: []float64{r.P50 / 1e3, r.P90 / 1e3, r.P99 / 1e3, r.P999 / 1e3}})
	}
	return axes, nil
}
