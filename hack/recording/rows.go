// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"unicode"
)

// The size of the screen, in characters.
const (
	screenRows    = 25
	screenColumns = 115
	tabColumns    = 8
)

// escapes are sequences that control a terminal: with parameters (colours, erasing), with a text (titles), and others.
var escapes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]`)

// rowsOf returns the rows that a line of output fills: without control characters, with spaces for tabs, and wrapped at
// the width of the screen. Of a line that was written several times, as progress is, it returns the last state.
func rowsOf(text string) (rows []string) {
	text = strings.TrimRight(text, "\r\n")
	text = text[strings.LastIndexByte(text, '\r')+1:]
	var row []rune
	for _, r := range escapes.ReplaceAllString(text, "") {
		if len(row) == screenColumns {
			rows, row = append(rows, string(row)), nil
		}
		switch {
		case r == '\t':
			n := min(tabColumns-len(row)%tabColumns, screenColumns-len(row))
			row = append(row, []rune(strings.Repeat(" ", n))...)
		case unicode.IsPrint(r):
			row = append(row, r)
		}
	}
	return append(rows, strings.TrimRight(string(row), " "))
}
