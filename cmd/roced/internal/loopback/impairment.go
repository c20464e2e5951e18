// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/spf13/pflag"
)

// ImpairmentFlags are the flags that impair an in-memory network.
type ImpairmentFlags struct {
	loss, duplication, reordering share
	delay, mark                   time.Duration
	rate                          bits
	seed                          uint64
	schedule                      string // file
	flags                         *pflag.FlagSet
}

// names lists the flags.
var names = []string{"loss", "duplicate", "reorder", "delay", "rate", "mark", "seed", "schedule"}

// Add adds the flags to a flag set. when prefixes their help with their condition.
func (w *ImpairmentFlags) Add(f *pflag.FlagSet, when string) {
	w.flags = f
	f.Var(&w.loss, "loss", when+"`share` of lost packets, such as 0.1%")
	f.Var(&w.duplication, "duplicate", when+"`share` of duplicated packets")
	f.Var(&w.reordering, "reorder", when+"`share` of packets delivered after their successor")
	f.DurationVar(&w.delay, "delay", 0, when+"`time` that each packet is delayed, such as 50us")
	f.Var(&w.rate, "rate", when+"maximum `bits` per second of each host, such as 10gbit")
	f.DurationVar(&w.mark, "mark", 0, when+"queueing `time` from which packets are ECN-marked; requires --rate")
	f.Uint64Var(&w.seed, "seed", 0, when+"`number` that seeds the selection of packets")
	f.StringVar(&w.schedule, "schedule", "", when+"`file` of link and address changes: lines of time, host and event")
}

// Given returns the first given flag, or "".
func (w *ImpairmentFlags) Given() string {
	for _, name := range names {
		if w.flags != nil && w.flags.Changed(name) {
			return name
		}
	}
	return ""
}

// Fill sets the options of a network. It returns verbs.ErrInvalid for invalid values and an invalid schedule.
func (w *ImpairmentFlags) Fill(o *Options) (err error) {
	if w.delay < 0 {
		return fmt.Errorf("%w: --delay must not be negative: %v", verbs.ErrInvalid, w.delay)
	}
	if w.mark < 0 || w.mark > 0 && w.rate == 0 {
		return fmt.Errorf("%w: --mark must not be negative and requires --rate, which creates the queue: %v", verbs.ErrInvalid, w.mark)
	}
	o.Seed = w.seed
	o.Impairment = memnet.Impairment{
		Loss: float64(w.loss), Duplication: float64(w.duplication), Reordering: float64(w.reordering), Delay: w.delay, Rate: uint64(w.rate), Mark: w.mark,
	}
	if w.schedule != "" {
		o.Schedule, err = ReadSchedule(w.schedule)
	}
	return err
}

// share is a share from 0 to 1, written as a percentage.
type share float64

// Set implements pflag.Value.
func (s *share) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !(value >= 0 && value <= 100) || !percent && value != 0 { // without the percent sign, 1 could mean 1% or 100%
		return fmt.Errorf("must be a share from 0%% to 100%%, such as 0.1%%")
	}
	*s = share(value / 100)
	return nil
}

// String implements pflag.Value.
func (s *share) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*s)*100, 'g', -1, 64) + "%"
}

// Type implements pflag.Value.
func (s *share) Type() string { return "share" }

// bits is a number of bits per second.
type bits uint64

// units are those of tc(8).
var units = []struct {
	name string
	bits float64
}{{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"bit", 1}}

// Set implements pflag.Value.
func (b *bits) Set(text string) error {
	for _, unit := range units {
		if number, is := strings.CutSuffix(text, unit.name); is {
			value, err := strconv.ParseFloat(number, 64)
			if err == nil && value > 0 && value*unit.bits >= 1 && value*unit.bits < 1e15 {
				*b = bits(value * unit.bits)
				return nil
			}
			break
		}
	}
	return fmt.Errorf("must be a number with bit, kbit, mbit or gbit, such as 10gbit")
}

// String implements pflag.Value.
func (b *bits) String() string {
	return cmp.Or(strings.TrimPrefix(strconv.FormatUint(uint64(*b), 10)+"bit", "0bit"), "")
}

// Type implements pflag.Value.
func (b *bits) Type() string { return "bits" }
