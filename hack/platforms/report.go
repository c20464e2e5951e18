package main

import (
	"fmt"
	"strings"
	"time"
)

// report has the outcomes of all cases.
type report struct {
	passed, failed int
	rows           []*row
}

// row is a machine's line of the table.
type row struct {
	report *report
	name   string
	kernel string
	cells  map[string]*cell
}

// cell has the outcomes of a column's cases.
type cell struct {
	passed int
	failed []string
}

// begin begins a machine's line.
func (r *report) begin(name, kernel string) *row {
	at := &row{r, name, kernel, map[string]*cell{}}
	r.rows = append(r.rows, at)
	return at
}

// outputLines is how many of a failed case's lines of output are printed, at most: the first and as many of the last.
const outputLines = 150

// add counts a case and prints its line, and its output if it failed.
func (r *row) add(c testCase, note, out string, err error, took time.Duration) {
	if r.cells[c.column] == nil {
		r.cells[c.column] = &cell{}
	}
	at := r.cells[c.column]
	if err == nil {
		at.passed++
		r.report.passed++
		fmt.Printf("ok      %-40s %8.1f s  %s\n", c.name, took.Seconds(), note)
		return
	}
	at.failed = append(at.failed, strings.TrimLeft(strings.TrimPrefix(c.name, c.column), ": "))
	r.report.failed++
	fmt.Printf("FAILED  %-40s %8.1f s  %v\n%s\n", c.name, took.Seconds(), err, excerpt(out))
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
	for _, row := range r.rows {
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
	case c.passed > 1:
		return fmt.Sprintf("ok (%d)", c.passed)
	}
	return "ok"
}
