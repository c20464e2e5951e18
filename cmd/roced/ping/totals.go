package ping

import (
	"fmt"
	"io"
	"slices"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/pingpong"
)

// printTotals is what ibv_ud_pingpong prints at the end, and the times of the round trips.
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
