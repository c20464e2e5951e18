// SPDX-License-Identifier: Apache-2.0

package show

import (
	"strings"
	"unicode/utf8"

	"github.com/roced/roced/cmd/roced/internal/daemon"
)

// gap separates columns.
const gap = "  "

// indent starts the continuation lines of a row.
const indent = "  "

// table formats a header and rows as columns. Columns of numbers are right-aligned. A row that exceeds the
// width continues on further lines; width 0 is unlimited.
func table(header []string, rows []row, width int) string {
	lines := [][]string{header}
	for _, r := range rows {
		cells := r.cells()
		for i := range cells {
			cells[i] = daemon.Printable(cells[i])
		}
		lines = append(lines, cells)
	}
	columns := columnsOf(lines)
	breaks := columns.breaks(width)
	var b strings.Builder
	for _, cells := range lines {
		for i, from := range breaks[:len(breaks)-1] {
			text := columns[from:breaks[i+1]].line(cells[from:breaks[i+1]])
			if i > 0 && text != "" {
				text = indent + strings.Join(fold(text, width-len(indent)), "\n"+indent)
			}
			if text != "" {
				b.WriteString(text + "\n")
			}
		}
	}
	return b.String()
}

// fold breaks a text between words into lines of a width. A longer word gets its own line.
func fold(text string, width int) (lines []string) {
	for utf8.RuneCountInString(text) > width {
		at := strings.LastIndexByte(text[:len(string([]rune(text)[:width+1]))], ' ')
		if at <= 0 {
			at = strings.IndexByte(text, ' ')
		}
		if at <= 0 {
			break
		}
		lines, text = append(lines, strings.TrimRight(text[:at], " ")), strings.TrimLeft(text[at:], " ")
	}
	return append(lines, text)
}

// column holds the width of a column, and whether all its cells are numbers.
type column struct {
	width   int
	numbers bool
}

type columns []column

func columnsOf(lines [][]string) columns {
	list := make(columns, len(lines[0]))
	for i := range list {
		list[i].numbers = len(lines) > 1
		for n, cells := range lines {
			list[i].width = max(list[i].width, utf8.RuneCountInString(cells[i]))
			if n > 0 && strings.Trim(cells[i], "0123456789,") != "" || cells[i] == "" {
				list[i].numbers = false
			}
		}
	}
	return list
}

// breaks returns the columns at which lines of a row start, and the number of columns.
func (c columns) breaks(width int) []int {
	list, used := []int{0}, 0
	for i, column := range c {
		if used += column.width; width > 0 && used > width && i > list[len(list)-1] {
			list, used = append(list, i), len(indent)+column.width
		}
		used += len(gap)
	}
	return append(list, len(c))
}

func (c columns) line(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		padding := strings.Repeat(" ", c[i].width-utf8.RuneCountInString(cell))
		if c[i].numbers {
			b.WriteString(padding + cell + gap)
		} else {
			b.WriteString(cell + padding + gap)
		}
	}
	return strings.TrimRight(b.String(), " ")
}
