// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// speedRounds is the number of alternating runs of each contender.
const speedRounds = 5

// contender is a server and a client whose output contains a figure.
type contender struct {
	name   string
	server string
	client string
	reads  *regexp.Regexp // its group is the figure; the last match is the client's
	scale  float64        // factor that converts the figure to the unit
}

// comparison is a measurement with C programs and with roced's command, which is a Go client.
type comparison struct {
	what   string
	unit   string
	inC    contender
	inGo   contender
	slower bool // the figure is a time, of which less is better
}

var (
	perftestBandwidth = regexp.MustCompile(`(?m)^ 65536 +\d+ +[\d.]+ +([\d.]+)`)
	perftestTypical   = regexp.MustCompile(`(?m)^ 64 +\d+ +[\d.]+ +[\d.]+ +([\d.]+)`)
	perftestTail      = regexp.MustCompile(`(?m)^ 64 +\d+ +[\d.]+ +[\d.]+ +[\d.]+\s+[\d.]+\s+[\d.]+\s+([\d.]+)`)
	commandBandwidth  = regexp.MustCompile(`"received_bytes_per_second": (\d+)`)
	commandTypical    = regexp.MustCompile(`"p50_ns": (\d+)`)
)

// comparisons returns a comparison of each kind of bandwidth and of latency. perftest's MB is 2²⁰ bytes, and its
// latency is half a round trip.
func (b *bench) comparisons() (list []comparison) {
	perf := b.roced() + " perf -d loop --rc --spin -m 4096 "
	for _, op := range []string{"send", "write", "read"} {
		c, g := "ib_"+op+"_bw -F -s 65536 -n 20000", perf+"--bandwidth -n 20000 -s 65536 --op "+op
		list = append(list, comparison{
			what: op + ", 64 KiB", unit: "GB/s",
			inC:  contender{"C", c, c + " @", perftestBandwidth, 1.048576e-3},
			inGo: contender{"Go", g, g + " --json @", commandBandwidth, 1e-9},
		})
	}
	c, g := "ib_send_lat -F -s 64 -n 5000", perf+"--latency -n 5000 -s 64"
	return append(list, comparison{
		what: "round trip, 64 bytes", unit: "µs", slower: true,
		inC:  contender{"C", c, c + " @", perftestTypical, 2},
		inGo: contender{"Go", g, g + " --json @", commandTypical, 1e-3},
	})
}

// speed runs the comparisons on an in-memory network. Rates do not make it fail.
func (b *bench) speed(ctx context.Context) (err error) {
	n, err := newMemory(ctx, b)
	defer func() { err = errors.Join(err, n.Close()) }()
	if err != nil {
		return err
	}
	for _, c := range b.comparisons() {
		if err := b.compare(ctx, n, c); err != nil {
			return err
		}
	}
	if err := b.trips(ctx, n); err != nil {
		return err
	}
	said, err := b.try(ctx, n, testCase{client: "python3 ../scripts/register.py", want: `^first [\d.]+ again [\d.]+ last [\d.]+`})
	fmt.Printf("registration and deregistration of 1 MiB in µs: %s\n", strings.TrimSpace(said))
	return err
}

// compare runs both contenders alternately. Each ratio is that of one round.
func (b *bench) compare(ctx context.Context, n *network, c comparison) error {
	var inC, inGo, ratios []float64
	for range speedRounds {
		first, err := b.figure(ctx, n, c.inC)
		if err != nil {
			return err
		}
		second, err := b.figure(ctx, n, c.inGo)
		if err != nil {
			return err
		}
		inC, inGo, ratios = append(inC, first), append(inGo, second), append(ratios, first/second)
		if c.slower {
			ratios[len(ratios)-1] = second / first
		}
	}
	fmt.Printf("%-22s C %7.2f %s   Go %7.2f %s   C as fast as Go %.2f times (%.2f to %.2f)\n",
		c.what, median(inC), c.unit, median(inGo), c.unit, median(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

// trips measures round trips of two spinning programs, without and with a busy loop on the same machine.
func (b *bench) trips(ctx context.Context, n *network) error {
	line := "ib_send_lat -F -s 64 -n 10000"
	for _, hogs := range []int{0, 1} {
		hogged, end := context.WithCancel(ctx)
		for range hogs {
			b.start(hogged, n.sides[0], testCase{}, "sh ../scripts/hog.sh")
		}
		var typical, tail []float64
		for range speedRounds {
			said, err := b.try(ctx, n, testCase{server: line, client: line + " @"})
			if err != nil {
				end()
				return err
			}
			p50, p99 := last(perftestTypical, said), last(perftestTail, said)
			typical, tail = append(typical, 2*p50), append(tail, 2*p99)
		}
		end()
		fmt.Printf("round trip of spinning C programs with %d busy loops: p50 %.0f µs, p99 %.0f µs\n", hogs, median(typical), median(tail))
	}
	return nil
}

func (b *bench) figure(ctx context.Context, n *network, c contender) (float64, error) {
	said, err := b.try(ctx, n, testCase{server: c.server, client: c.client})
	if err != nil {
		return 0, err
	}
	if found := last(c.reads, said); found > 0 {
		return found * c.scale, nil
	}
	return 0, fmt.Errorf("%s: no figure in: %s", c.client, said)
}

// last returns the number of the last match, or 0.
func last(pattern *regexp.Regexp, said string) float64 {
	found := pattern.FindAllStringSubmatch(said, -1)
	if found == nil {
		return 0
	}
	number, _ := strconv.ParseFloat(found[len(found)-1][1], 64)
	return number
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
