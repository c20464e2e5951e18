// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
)

// report prints a line per case, and counts the results.
type report struct {
	passed, failed, skipped int
}

func (r *report) heading(text string) { fmt.Printf("\n%s\n", text) }

// line prints the result of a case: its detail, or the failure.
func (r *report) line(name, detail string, err error) {
	if err != nil {
		r.failed++
		fmt.Printf("FAIL  %-44s %s\n", name, reason(err))
		return
	}
	r.passed++
	fmt.Printf("ok    %-44s %s\n", name, detail)
}

// reason returns an error's text, indented and with truncated lines.
func reason(err error) string {
	const width = 200
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i, line := range lines {
		lines[i] = line[:min(len(line), width)]
	}
	return strings.Join(lines, "\n        ")
}

// skip prints the reason why cases cannot run.
func (r *report) skip(cases int, why string) {
	r.skipped += cases
	fmt.Printf("\nnot run: %d cases: %s\n", cases, why)
}

func (r *report) end() error {
	if r.passed+r.failed == 0 {
		return errors.New("no case ran; -list shows their names")
	}
	fmt.Printf("\n%s\n\n%d passed, %d failed, %d not run\n", tsharkNotes, r.passed, r.failed, r.skipped)
	if r.failed > 0 {
		return fmt.Errorf("%d cases failed", r.failed)
	}
	return nil
}
