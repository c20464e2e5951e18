// SPDX-License-Identifier: Apache-2.0

package ping

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/pingpong"
)

// printMessage prints the last received message, and its round trip time if this side sent the message before
// it.
func printMessage(out io.Writer, from netip.Addr, p *pingpong.Exchange) {
	text := fmt.Sprintf("%d bytes from %v: message %d", p.Size, from.Unmap(), p.Received)
	if p.Sent > 0 {
		text += fmt.Sprintf(", %.1f usec", float64(p.Trips[len(p.Trips)-1])/1e3)
	}
	fmt.Fprintln(out, text)
}

// printTotals prints the totals of ibv_ud_pingpong, and the round trip times.
func printTotals(out io.Writer, p *pingpong.Exchange) error {
	bytes := int64(p.Size) * int64(p.Sent+p.Received)
	seconds, usec := p.Elapsed().Seconds(), float64(p.Elapsed())/1e3
	_, err := fmt.Fprintf(out, "%d bytes in %.2f seconds = %.2f Mbit/sec\n%d iters in %.2f seconds = %.2f usec/iter\n",
		bytes, seconds, float64(bytes)*8/usec, p.Received, seconds, usec/float64(p.Received))
	if len(p.Trips) == 0 || err != nil {
		return err
	}
	slices.Sort(p.Trips)
	_, err = fmt.Fprintf(out, "round trip min/median/p99/max = %.1f/%.1f/%.1f/%.1f usec\n", float64(p.Trips[0])/1e3,
		float64(cli.Percentile(p.Trips, 50))/1e3, float64(cli.Percentile(p.Trips, 99))/1e3, float64(p.Trips[len(p.Trips)-1])/1e3)
	return err
}

// result is the result of an exchange, in JSON.
type result struct {
	Local    card.Side     `json:"local"`
	Peer     string        `json:"peer"`    // address
	Service  string        `json:"service"` // UD, RC or UC
	Waiting  string        `json:"waiting"` // spin or sleep
	Size     int           `json:"size"`    // bytes
	Sent     int           `json:"sent"`
	Received int           `json:"received"`
	Elapsed  time.Duration `json:"elapsed_ns"`
	Min      time.Duration `json:"min_ns"` // of round trips, as the next three
	P50      time.Duration `json:"p50_ns"`
	P99      time.Duration `json:"p99_ns"`
	Max      time.Duration `json:"max_ns"`
}

func (r *meeting) result(p *pingpong.Exchange) *result {
	slices.Sort(p.Trips)
	return &result{
		Local: r.device.Side(r.source.GID.Addr().String()), Peer: r.peer.GID.Addr().String(), Service: r.options.service().String(), Waiting: r.options.waiting.String(),
		Size: p.Size, Sent: p.Sent, Received: p.Received, Elapsed: p.Elapsed(),
		Min: cli.Percentile(p.Trips, 0), P50: cli.Percentile(p.Trips, 50), P99: cli.Percentile(p.Trips, 99), Max: cli.Percentile(p.Trips, 100),
	}
}
