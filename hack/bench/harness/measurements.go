// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"regexp"
	"time"
)

// Measurements holds the number and duration of rounds, and the results.
type Measurements struct {
	Duration      time.Duration // time of each throughput measurement
	Rounds, Trips int
	Output        string // file for the records; none if empty
	records       []Record
}

// Add adds a record.
func (b *Measurements) Add(r Record) { b.records = append(b.records, r) }

// InTurns measures the variants one after the other in Rounds rounds, and records the medians.
func (b *Measurements) InTurns(name string, size int, setting string, variants []string, measure func(variant string) (float64, error)) error {
	rates := map[string][]float64{}
	for range b.Rounds {
		for _, variant := range variants {
			rate, err := measure(variant)
			if err != nil {
				return fmt.Errorf("%s, %d bytes: %w", variant, size, err)
			}
			rates[variant] = append(rates[variant], rate)
			fmt.Fprint(os.Stderr, ".")
		}
	}
	for _, variant := range variants {
		b.Add(Record{Name: name, Variant: variant, Size: size, Setting: setting, PerSecond: Median(rates[variant]), Rates: rates[variant]})
	}
	return nil
}

// Part is a separate measurement, recorded by its name.
type Part struct {
	Name string
	Run  func() error
}

// Run runs the parts whose names match, and writes the records of each to the output file.
func (b *Measurements) Run(only *regexp.Regexp, parts []Part) error {
	if _, err := readRecords(b.Output); err != nil {
		return err // before the first part runs
	}
	ran := false
	for _, part := range parts {
		if !only.MatchString(part.Name) {
			continue
		}
		ran = true
		first := len(b.records)
		err := part.Run()
		if err == nil {
			err = b.keep(part.Name, b.records[first:])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", part.Name, err)
		}
	}
	if !ran {
		return fmt.Errorf("no part matches %q; -help lists them", only)
	}
	return nil
}
