// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// report contains the outcomes of all cases. Several machines add to it concurrently.
type report struct {
	lock           sync.Mutex
	passed, failed int
	rows           map[string]*row
	order          []platform // order of the rows
}

// row is the line of a machine in the table.
type row struct {
	report *report
	name   string
	kernel string
	cells  map[string]*cell
}

// cell contains the outcomes of the cases in a column.
type cell struct {
	passed int
	failed []string
	once   map[string]int // numbers of cases on other machines, by machine
}

func newReport(order []platform) *report { return &report{rows: map[string]*row{}, order: order} }

// begin adds the row of a machine.
func (r *report) begin(p platform, kernel string) *row {
	r.lock.Lock()
	defer r.lock.Unlock()
	at := &row{r, p.name, kernel, map[string]*cell{}}
	r.rows[p.name] = at
	return at
}

// cell returns the cell of a case. The caller holds the report's lock.
func (r *row) cell(c testCase) *cell {
	if r.cells[c.column] == nil {
		r.cells[c.column] = &cell{once: map[string]int{}}
	}
	return r.cells[c.column]
}

// outputLines is the maximum number of first lines, and of last lines, of a failed case's output that are printed.
const outputLines = 150

// add counts a case and prints its line, and its output if it failed.
func (r *row) add(c testCase, note, out string, err error, took time.Duration) {
	r.report.lock.Lock()
	defer r.report.lock.Unlock()
	at := r.cell(c)
	if err == nil {
		at.passed++
		r.report.passed++
		r.print("ok", c, "%8.1f s  %s", took.Seconds(), note)
		return
	}
	at.failed = append(at.failed, strings.TrimLeft(strings.TrimPrefix(c.name, c.column), ": "))
	r.report.failed++
	r.print("FAILED", c, "%8.1f s  %v\n%s", took.Seconds(), err, excerpt(out))
}

// elsewhere counts a case that runs on another machine of the architecture, and prints its line.
func (r *row) elsewhere(c testCase, machine string) {
	r.report.lock.Lock()
	defer r.report.lock.Unlock()
	r.cell(c).once[machine]++
	r.print("once", c, "%10s  on %s: no call that depends on the kernel", "–", machine)
}

// print prints the line of a case.
func (r *row) print(outcome string, c testCase, format string, args ...any) {
	fmt.Printf("%-7s %-14s %-34s "+format+"\n", append([]any{outcome, r.name, c.name}, args...)...)
}

// excerpt shortens an output.
func excerpt(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if left := len(lines) - 2*outputLines; left > 0 {
		lines = append(append(lines[:outputLines:outputLines], fmt.Sprintf("… %d lines …", left)), lines[outputLines+left:]...)
	}
	for i, line := range lines {
		lines[i] = "        " + line[:min(len(line), 500)]
	}
	return strings.Join(lines, "\n")
}

// table returns the results in Markdown.
func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| machine | Linux | %s |\n|---|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, p := range r.order {
		row := r.rows[p.name]
		if row == nil {
			continue // the run ended before the machine started
		}
		fmt.Fprintf(&b, "| %s | %s |", row.name, row.kernel)
		for _, column := range columns {
			fmt.Fprintf(&b, " %s |", row.cells[column])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// String returns the text of a cell: a dash if no case ran.
func (c *cell) String() string {
	switch {
	case c == nil:
		return "–"
	case len(c.failed) > 0:
		return strings.TrimSuffix("FAILED: "+strings.Join(c.failed, ", "), ": ")
	}
	text := ""
	for machine, count := range c.once {
		text = fmt.Sprintf("%d on %s", count, machine)
	}
	switch {
	case c.passed == 0:
		return "(" + text + ")"
	case text != "":
		return fmt.Sprintf("ok (%d, and %s)", c.passed, text)
	case c.passed > 1:
		return fmt.Sprintf("ok (%d)", c.passed)
	}
	return "ok"
}
