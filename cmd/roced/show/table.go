package show

import (
	"strings"
	"unicode/utf8"

	"github.com/roced/roced/cmd/roced/internal/daemon"
)

// gap is between columns.
const gap = "  "

// table is a header, and a line for each row, in columns. Those of numbers are aligned at their right.
func table(header []string, rows []row) string {
	lines := [][]string{header}
	for _, r := range rows {
		cells := r.cells()
		for i := range cells {
			cells[i] = daemon.Printable(cells[i])
		}
		lines = append(lines, cells)
	}
	columns := columnsOf(lines)
	var b strings.Builder
	for _, cells := range lines {
		b.WriteString(columns.line(cells) + "\n")
	}
	return b.String()
}

// column is how wide one is, and whether all below its header are numbers.
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
