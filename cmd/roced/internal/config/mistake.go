package config

import (
	"fmt"
	"strings"
)

// Mistake is something wrong in a configuration file.
type Mistake struct {
	File         string
	Line, Column int // from 1; 0 for what stands nowhere
	Key          string
	Text         string // what is wrong, and what to write instead
}

// String is FILE:LINE:COLUMN: KEY: TEXT, which editors understand.
func (m Mistake) String() string {
	var b strings.Builder
	b.WriteString(m.File)
	if m.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", m.Line, m.Column)
	}
	b.WriteString(": ")
	if m.Key != "" {
		b.WriteString(m.Key + ": ")
	}
	return b.String() + m.Text
}

// Mistakes is an error with all that is wrong in a file.
type Mistakes []Mistake

// Error is a line for each.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, one := range m {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}
