// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// benchJob is the part of a job of hack/bench that UDP requires, and benchResult is its result (harness/job.go there).
type benchJob struct {
	Role, Variant, Namespace string
	Size                     int
	Duration                 time.Duration
	Count                    int
	Sleep                    bool
	Own, Peer                struct{ Address string }
}

type benchResult struct {
	Messages   uint64
	PerSecond  float64
	RoundTrips []time.Duration
}

// measureUDP measures sendmmsg(2) and recvmmsg(2) with 64 messages per call, and round trips with one. The receiving
// side ends when a file appears.
func measureUDP(ctx context.Context, l *testbed, m measurement) (figure, error) {
	receiver, sender := "receive", "send"
	if m.kind == roundTrip {
		receiver, sender = "pong", "ping"
	}
	const stop = "/run/stop"
	command := fmt.Sprintf("rm -f %s; while [ ! -e %[1]s ]; do sleep 1; done | %s", stop, l.benchCommand(m, receiver, rightAddress, leftAddress))
	right := l.right.Start(ctx, command)
	if _, err := right.Saying(ctx, "}"); err != nil { // the child is ready
		return figure{}, err
	}
	said, err := l.left.Run(ctx, l.benchCommand(m, sender, leftAddress, rightAddress))
	if err != nil {
		return figure{}, fmt.Errorf("%w: %s", err, said)
	}
	if _, err := l.right.Run(ctx, ": >"+stop); err != nil {
		return figure{}, err
	}
	heard, err := right.Wait()
	if err != nil {
		return figure{}, fmt.Errorf("%w: %s", err, heard)
	}
	return udpFigure(m, said, heard)
}

func (l *testbed) benchCommand(m measurement, role, own, peer string) string {
	job := benchJob{
		Role: role, Variant: "udp", Namespace: "/proc/self/ns/net", Size: m.size,
		Duration: l.options.duration, Count: l.options.trips, Sleep: m.sleep,
	}
	job.Own.Address, job.Peer.Address = own, peer
	text, err := json.Marshal(job)
	if err != nil {
		panic(err) // not possible for this type
	}
	return fmt.Sprintf("/host/bench child '%s'", text)
}

func udpFigure(m measurement, said, heard string) (f figure, err error) {
	sent, err := benchSaid(said)
	if err != nil {
		return f, err
	}
	if m.kind == roundTrip {
		if len(sent.RoundTrips) == 0 {
			return f, fmt.Errorf("no message came back")
		}
		slices.Sort(sent.RoundTrips)
		return figure{trip: sent.RoundTrips[len(sent.RoundTrips)/2]}, nil
	}
	received, err := benchSaid(heard)
	if err != nil {
		return f, err
	}
	return figure{perSecond: received.PerSecond, lost: share(sent.Messages, received.Messages)}, nil
}

// benchSaid skips the child's first line, which reports that it is ready.
func benchSaid(text string) (r benchResult, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&struct{}{}); err != nil {
		return r, fmt.Errorf("%w in %q", err, text)
	}
	if err := decoder.Decode(&r); err != nil {
		return r, fmt.Errorf("%w in %q", err, text)
	}
	return r, nil
}

// share returns the share of sent messages that were not received.
func share(sent, received uint64) float64 {
	if sent == 0 || received >= sent {
		return 0
	}
	return float64(sent-received) / float64(sent)
}
