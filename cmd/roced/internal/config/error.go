// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// Error is an error in a configuration file.
type Error struct {
	File         string
	Line, Column int // from 1; 0 if the error has no position
	Key          string
	Text         string // error and remedy
}

// String returns FILE:LINE:COLUMN: KEY: TEXT, which editors can parse.
func (m Error) String() string {
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

// Errors is an error with all errors in a file.
type Errors []Error

// Error returns a line for each error.
func (m Errors) Error() string {
	lines := make([]string, len(m))
	for i, one := range m {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}
