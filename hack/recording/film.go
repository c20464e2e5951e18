// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"
	"unicode/utf8"
)

const (
	keyTime     = 25 * time.Millisecond   // per typed character
	rowTime     = 60 * time.Millisecond   // shortest time between rows
	promptTime  = 1200 * time.Millisecond // between a prompt and its command
	longestWait = 1500 * time.Millisecond // longest time between rows
	longestPlay = 20 * time.Second
	holdTime    = 5 * time.Second // during which the last frame is shown
)

// film is the text of a terminal and the times at which it appears. The zero value is an empty terminal.
type film struct {
	rows   []row
	titles []string // the commands
	frames []frame
	now    time.Duration
}

type row struct {
	text  string
	typed bool
}

// frame is the state of the screen from a time on: all text before the cursor is shown.
type frame struct {
	at          time.Duration
	row, column int // of the cursor
	title       int
	keys        int // characters that are typed until the next frame
}

// add appends a prompt, a command that is typed there, and its output.
func (f *film) add(prompt, command string, lines []line) {
	f.titles = append(f.titles, command)
	f.prompt(prompt)
	f.now += promptTime
	f.enter(command)
	last := time.Duration(0)
	for _, l := range lines {
		f.wait(l.at - last)
		last = l.at
		for i, text := range rowsOf(l.text) {
			if i > 0 {
				f.wait(0)
			}
			f.rows = append(f.rows, row{text: text})
			f.show(frame{row: len(f.rows)})
		}
	}
	f.wait(0)
}

func (f *film) prompt(prompt string) {
	f.show(frame{row: len(f.rows), column: utf8.RuneCountInString(prompt)})
	f.rows = append(f.rows, row{prompt, true})
}

// enter types a command behind the prompt and ends the row.
func (f *film) enter(command string) {
	typed := f.frames[len(f.frames)-1]
	typed.keys = utf8.RuneCountInString(command)
	f.show(typed)
	f.now += time.Duration(typed.keys) * keyTime
	typed.column += typed.keys
	typed.keys = 0
	f.show(typed)
	f.rows[typed.row].text += command
	f.wait(0)
	f.show(frame{row: len(f.rows)})
}

// wait advances the time by that of the recording, within limits.
func (f *film) wait(recorded time.Duration) {
	f.now += min(max(recorded, rowTime), longestWait)
}

// show appends a frame at the present time.
func (f *film) show(next frame) {
	next.at, next.title = f.now, len(f.titles)-1
	f.frames = append(f.frames, next)
}

// end appends a last prompt. If the film is longer than longestPlay, it then plays faster.
func (f *film) end(prompt string) {
	f.prompt(prompt)
	if f.now <= longestPlay {
		return
	}
	for i := range f.frames {
		f.frames[i].at = time.Duration(float64(f.frames[i].at) / float64(f.now) * float64(longestPlay))
	}
	f.now = longestPlay
}
