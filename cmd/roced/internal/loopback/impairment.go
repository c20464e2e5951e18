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

// Weather is what is wrong with a network in memory, as a command line says it.
type Weather struct {
	loss, duplication, reordering share
	delay, mark                   time.Duration
	rate                          bits
	seed                          uint64
	schedule                      string // file
	flags                         *pflag.FlagSet
}

// names are those of the flags.
var names = []string{"loss", "duplicate", "reorder", "delay", "rate", "mark", "seed", "schedule"}

// Add adds the flags to a command's. The usage of each begins with when it holds.
func (w *Weather) Add(f *pflag.FlagSet, when string) {
	w.flags = f
	f.Var(&w.loss, "loss", when+"`share` of the packets that are lost, as 0.1%")
	f.Var(&w.duplication, "duplicate", when+"`share` of the packets that come twice")
	f.Var(&w.reordering, "reorder", when+"`share` of the packets that the next one overtakes")
	f.DurationVar(&w.delay, "delay", 0, when+"`time` that each packet takes, as 50us")
	f.Var(&w.rate, "rate", when+"`bits` per second that a host sends at most, as 10gbit")
	f.DurationVar(&w.mark, "mark", 0, when+"`time`: packets that wait for longer to leave, with --rate, are marked, and connections slow down")
	f.Uint64Var(&w.seed, "seed", 0, when+"`number` that decides which packets these are")
	f.StringVar(&w.schedule, "schedule", "", when+"`file` of links that go down and up, and of addresses that change: lines of time, host and event")
}

// Given gives the first flag that was given; empty if none was.
func (w *Weather) Given() string {
	for _, name := range names {
		if w.flags != nil && w.flags.Changed(name) {
			return name
		}
	}
	return ""
}

// Fill puts it into a network's options. verbs.ErrInvalid for what is wrong with the schedule.
func (w *Weather) Fill(o *Options) (err error) {
	if w.delay < 0 {
		return fmt.Errorf("%w: --delay %v: 0 or more", verbs.ErrInvalid, w.delay)
	}
	if w.mark < 0 || w.mark > 0 && w.rate == 0 {
		return fmt.Errorf("%w: --mark %v: 0 or more, and together with --rate, which makes the queue that it is about", verbs.ErrInvalid, w.mark)
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

// share is a part of all, from 0 to 1, written in percent or as a number.
type share float64

// Set implements pflag.Value.
func (s *share) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !(value >= 0 && value <= 100) || !percent && value != 0 { // without the sign some mean 1 of 1, and others of 100
		return fmt.Errorf("write a share from 0%% to 100%%, such as 0.1%%")
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

// units are tc(8)'s.
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
	return fmt.Errorf("write a number with bit, kbit, mbit or gbit, such as 10gbit")
}

// String implements pflag.Value.
func (b *bits) String() string {
	return cmp.Or(strings.TrimPrefix(strconv.FormatUint(uint64(*b), 10)+"bit", "0bit"), "")
}

// Type implements pflag.Value.
func (b *bits) Type() string { return "bits" }
