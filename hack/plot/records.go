// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// records is bench.json, as far as it is drawn; hack/bench/file.go and record.go write it.
type records struct {
	Parts []part `json:"parts"`
}

// part contains the records of one measurement.
type part struct {
	Name     string   `json:"part"`
	Commit   string   `json:"commit"`
	Date     string   `json:"date"`
	Machine  machine  `json:"machine"`
	Rounds   int      `json:"rounds"`
	Duration string   `json:"duration"`
	Records  []record `json:"records"`
}

type machine struct {
	CPU        string `json:"cpu"`
	Processors int    `json:"processors"`
	Kernel     string `json:"kernel"`
}

// record is one case.
type record struct {
	Name       string    `json:"name"`
	Variant    string    `json:"variant"`
	Size       int       `json:"size"` // payload, bytes
	Setting    string    `json:"setting"`
	PerSecond  float64   `json:"messages_per_second"`
	P50        float64   `json:"p50_ns"`
	P90        float64   `json:"p90_ns"`
	P99        float64   `json:"p99_ns"`
	P999       float64   `json:"p999_ns"`
	Rates      []float64 `json:"rounds_per_second"`
	Speeds     []float64 `json:"rounds_core_speed"`
	Distances  []float64 `json:"rounds_core_distance_ns"`
	Clients    int       `json:"clients"`
	Rate       int       `json:"rate"`
	CPURequest float64   `json:"cpu_ns_per_request"`
	Busy       float64   `json:"machine_ns_per_request"`
}

func readRecords(name string) (*records, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &records{}
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func (f *records) part(name string) (*part, error) {
	for i := range f.Parts {
		if f.Parts[i].Name == name {
			return &f.Parts[i], nil
		}
	}
	return nil, fmt.Errorf("bench.json lacks the part %s: go run ./hack/bench -only %[1]s -output docs/bench.json", name)
}

// find gives the record of a case; want's name, variant, size, clients and rate say which, and its
// setting if it has one.
func (p *part) find(want record) (record, error) {
	for _, r := range p.Records {
		if want.Setting != "" && r.Setting != want.Setting {
			continue
		}
		if r.Name == want.Name && r.Variant == want.Variant && r.Size == want.Size && r.Clients == want.Clients && r.Rate == want.Rate {
			return r, nil
		}
	}
	return record{}, fmt.Errorf("bench.json, part %s, lacks %s of %s with %d bytes, %d clients, %d a second",
		p.Name, want.Name, want.Variant, want.Size, want.Clients, want.Rate)
}

// source describes the origin of the figures.
func (p *part) source() string {
	return fmt.Sprintf("%s, %d processors, Linux %s. Commit %s, %s, %d rounds of %s.",
		p.Machine.CPU, p.Machine.Processors, p.Machine.Kernel, p.Commit, p.Date, p.Rounds, p.Duration)
}
