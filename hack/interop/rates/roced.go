// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// perfReport is the used part of the output of roced perf --json.
type perfReport struct {
	Server struct {
		XDP   string `json:"xdp"`
		AFXDP string `json:"af_xdp"`
	} `json:"server"`
	Bandwidth []struct {
		ReceivedPerSec float64 `json:"received_per_second"`
		Sent           uint64  `json:"sent"`
		Received       uint64  `json:"received"`
	} `json:"bandwidth"`
	Latency []struct {
		P50 time.Duration `json:"p50_ns"`
	} `json:"latency"`
}

// roced returns a function that measures a card with a value of --network.
func roced(network string) func(context.Context, *testbed, measurement) (figure, error) {
	return func(ctx context.Context, l *testbed, m measurement) (figure, error) {
		return measureRoced(ctx, l, m, network)
	}
}

func measureRoced(ctx context.Context, l *testbed, m measurement, network string) (figure, error) {
	r, err := l.perf(ctx, m, network)
	if err != nil {
		return figure{}, err
	}
	if m.kind == roundTrip {
		return figure{trip: r.Latency[0].P50}, nil
	}
	b := r.Bandwidth[0]
	return figure{perSecond: b.ReceivedPerSec, lost: share(b.Sent, b.Received)}, nil
}

// perf runs roced perf on both machines.
func (l *testbed) perf(ctx context.Context, m measurement, network string) (r perfReport, err error) {
	what := fmt.Sprintf("--latency --count %d", l.options.trips)
	if m.kind == rate {
		what = fmt.Sprintf("--bandwidth --duration %v", l.options.duration)
	}
	if m.sleep {
		what += " --sleep"
	}
	if m.op != "" {
		return l.perfConnected(ctx, m, network)
	}
	client := fmt.Sprintf("/host/roced perf -d eth0 --network %s %s --json --sizes %d %s 2>/dev/null", network, rightAddress, m.size, what)
	_, said, err := l.runBoth(ctx, "/host/roced perf -d eth0 --once --network "+network, client)
	if err != nil {
		return r, err
	}
	return r, r.parse(said)
}

// perfConnected is like perf, over a connection, which requires the same flags on both sides.
func (l *testbed) perfConnected(ctx context.Context, m measurement, network string) (r perfReport, err error) {
	both := fmt.Sprintf("/host/roced perf -d eth0 --network %s --json --rc --op %s --sizes %d", network, m.op, m.size)
	if m.kind == rate {
		both += fmt.Sprintf(" --bandwidth --count %d", bulkMessages)
	} else {
		both += fmt.Sprintf(" --latency --count %d", l.options.trips)
	}
	if m.sleep {
		both += " --sleep"
	}
	_, said, err := l.runBoth(ctx, both+" 2>&1", both+" "+rightAddress+" 2>/dev/null")
	if err != nil {
		return r, err
	}
	return r, r.parse(said)
}

func (r *perfReport) parse(said string) error {
	if err := json.Unmarshal([]byte(said), r); err != nil {
		return fmt.Errorf("%w in %s", err, said)
	}
	if len(r.Bandwidth)+len(r.Latency) != 1 {
		return fmt.Errorf("roced perf measured nothing: %s", said)
	}
	return nil
}
