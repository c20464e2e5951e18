// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// recordFile is the content of bench.json. A new measurement of a part replaces only the part's records, so that parts
// can be measured separately.
type recordFile struct {
	Parts []measured `json:"parts"`
}

// measured contains the results of one part, with the machine and revision.
type measured struct {
	Part     string   `json:"part"`
	Commit   string   `json:"commit"`
	Date     string   `json:"date"`
	Machine  machine  `json:"machine"`
	Rounds   int      `json:"rounds"`
	Duration string   `json:"duration"` // time of each throughput measurement
	Records  []Record `json:"records"`
}

// readRecords returns an empty file if the file does not exist.
func readRecords(name string) (f recordFile, err error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("%s is not an output file of this bench, remove it: %w", name, err)
	}
	return f, nil
}

// Case is a record with the name of its part.
type Case struct {
	Part string
	Record
}

// ReadCases reads the output of a bench. It returns no cases if the file does not exist.
func ReadCases(name string) (cases []Case, err error) {
	f, err := readRecords(name)
	for _, part := range f.Parts {
		for _, r := range part.Records {
			cases = append(cases, Case{part.Part, r})
		}
	}
	return cases, err
}

func (f *recordFile) merge(m measured) {
	for i := range f.Parts {
		if f.Parts[i].Part == m.Part {
			f.Parts[i] = m
			return
		}
	}
	f.Parts = append(f.Parts, m)
}

func (f *recordFile) write(name string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

// keep writes a part's records to the output file, if one is set.
func (b *Measurements) keep(part string, records []Record) error {
	if b.Output == "" {
		return nil
	}
	f, err := readRecords(b.Output)
	if err != nil {
		return err
	}
	f.merge(measured{
		Part: part, Commit: commit(), Date: time.Now().UTC().Format(time.DateOnly), Machine: thisMachine(),
		Rounds: b.Rounds, Duration: b.Duration.String(), Records: records,
	})
	return f.write(b.Output)
}
